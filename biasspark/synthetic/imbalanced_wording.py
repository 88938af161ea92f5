"""What the comments of the imbalanced corpus say: short remarks, harmless or insulting, and talk to fill them up.

A remark has at most one slot for a term; `{a_term}` is the term with its article. Insults are mild: no slur, no
obscenity, no threat. None of these sentences is one of the templates of `biasspark.synthetic.madlibs_wording`; some
words are theirs, or a classifier trained on these could say nothing of those. No word here may be part of an identity
term, or a comment would mention a group by chance: `biasspark.synthetic.imbalanced` refuses such terms.
"""

from __future__ import annotations

TOXIC_NOUNS = (
    *("idiot", "fool", "moron", "loser", "clown", "liar", "jerk", "troll", "coward", "hypocrite", "crybaby", "vandal"),
    *("creep", "fraud", "windbag", "chump"),
)
"""All make their plural with an s."""

TOXIC_ADJECTIVES = (
    *("stupid", "pathetic", "useless", "worthless", "idiotic", "ridiculous", "clueless", "lazy", "rotten", "vile"),
    *("dumb", "ignorant", "arrogant", "childish", "hateful", "dishonest"),
)

INSULTS = (
    "You are such a {noun}.",
    "Shut up, you {noun}.",
    "Get lost, {adjective} {noun}.",
    "How can anyone be this {adjective}?",
    "Only {noun}s post such {adjective} garbage.",
    "You {noun}s make me sick.",
    "Ignore that {noun}, a total waste of time.",
    "Nobody can stand {adjective} {noun}s like you.",
    "Everything you post is {adjective}.",
    "Your edits are {adjective}, what a disgrace.",
    "Stop it, you {adjective} {noun}.",
    "Go away, {noun}.",
)

INSULTS_WITH_TERM = (
    "You {adjective} {term} {noun}.",
    "Another {adjective} {term} {noun}.",
    "What {a_term} {noun} you are.",
    "Spare us your {term} garbage.",
    "Why are {term} people so {adjective}?",
    "This page is run by {term} {noun}s.",
    "Go away, {term} {noun}.",
    "Typical {term} {noun}.",
    "Your {term} friends are {adjective}, too.",
    "Stop this {adjective} {term} whining.",
    "{A_term} {noun} must have posted that.",
    "Only {term} {noun}s believe it.",
)

REMARKS = (
    "I agree with the last comment.",
    "Thanks for the quick answer.",
    "The second link does not work.",
    "Could you add a source for this?",
    "The figures are from last year.",
    "I moved the table to the end.",
    "This paragraph repeats the first one.",
    "We should ask the others as well.",
    "The photograph is of the wrong bridge.",
    "I will look it up tonight.",
    "The date in the box is off by a year.",
    "Well written, and easy to follow.",
)

REMARKS_WITH_TERM = (
    "{A_term} reader asked the same thing.",
    "I added a source on {term} history.",
    "The {term} community hall has reopened.",
    "See the section on {term} authors.",
    "My {term} cousin drew the map.",
    "There is {a_term} theatre in our town.",
    "The exhibition shows {term} artists.",
    "She edits {a_term} magazine.",
    "The number of {term} residents has grown.",
    "We visited {a_term} bookshop in spring.",
    "The page on {term} poets is a stub.",
    "Two {term} players joined the club.",
)

REMARKS_WITH_STRONG_WORDS = (
    "Calling people {noun}s helps no one.",
    "That was a {adjective} mistake of mine.",
    "The {noun} in the play is well cast.",
    "Please avoid words like {adjective}.",
)

REMARKS_WITH_STRONG_WORDS_AND_TERM = (
    "{A_term} actor played the {noun}.",
    "Being called {adjective} hurts {term} readers.",
    "The {term} hero is no {noun} at all.",
    "That {adjective} joke upset {term} viewers.",
)

TALK = (
    "The council will discuss the {topic} again in autumn.",
    "Nobody has updated the part about the {topic} for months.",
    "A short note on the {topic} would help new readers.",
    "As far as I know the {topic} was never mentioned in the report.",
    "The first picture shows the {topic} before it was repaired.",
    "There are two sources for the {topic}, and they contradict each other.",
    "I would leave the {topic} out, it belongs on a page of its own.",
    "Last week the local paper had a long piece about the {topic}.",
    "If the {topic} stays, its dates need to be checked.",
    "Most visitors come because of the {topic}, so it should stand first.",
    "My notes on the {topic} are at home, so this is from memory.",
    "Whoever wrote about the {topic} did a good job.",
    "The budget for the {topic} was cut twice and raised once.",
    "You can find the plan of the {topic} in the archive.",
    "People argue about the {topic} every spring, then forget it.",
    "It took three years to finish the {topic}, not two.",
    "In the list the {topic} appears under another name.",
    "The {topic} is open on weekdays and closed on holidays.",
    "Some readers may not know what the {topic} is for.",
    "According to the index the {topic} is on page ninety.",
)

TOPICS = (
    *("ferry", "harbour", "railway", "library", "market", "bridge", "observatory", "canal", "museum", "orchard"),
    *("lighthouse", "windmill", "tunnel", "festival", "quarry", "dam", "aqueduct", "greenhouse", "reservoir", "arcade"),
    *("tramway", "vineyard", "sawmill", "botanical garden"),
)
