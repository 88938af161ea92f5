"""What the templated sentences say: 32 toxic and 32 harmless shapes, the words that fill them, the identity terms.

A template is toxic or harmless whatever stands in its slots. Each has one slot for the identity term and three of the
four for `FILLERS`, so all have the same number of fillings. Toxic sentences insult, mildly: no slur, no obscenity, no
threat. `{a adjective}` is the word with its article.

All of it was written for this project. No word here may be part of an identity term, or a sentence about one group
would mention another: `biasspark.synthetic.madlibs` refuses such terms.
"""

from __future__ import annotations

IDENTITY_TERMS = (
    *("lesbian", "gay", "bisexual", "transgender", "trans", "queer", "lgbt", "lgbtq", "homosexual", "straight"),
    *("heterosexual", "nonbinary", "male", "female"),
    *("african", "african american", "black", "white", "european", "hispanic", "latino", "latina", "latinx", "mexican"),
    *("canadian", "american", "asian", "indian", "middle eastern", "chinese", "japanese"),
    *("christian", "muslim", "jewish", "buddhist", "hindu", "catholic", "protestant", "sikh", "atheist"),
    *("old", "older", "young", "younger", "teenage", "elderly"),
    *("blind", "deaf", "paralyzed", "autistic"),
)
"""The terms of conf/identity_terms.txt, in its order; a test keeps the two the same."""

NAMES = (
    *("Alex", "Amara", "Anna", "Ben", "Carlos", "Chloe", "Daniel", "Elena", "Farid", "Grace", "Hana", "Ivan"),
    *("Jonas", "Kemi", "Lucia", "Marek", "Nadia", "Omar", "Priya", "Rosa", "Samuel", "Tara", "Viktor", "Yuki"),
)

OCCUPATIONS = (
    *("teacher", "nurse", "plumber", "lawyer", "baker", "farmer", "dentist", "librarian", "mechanic", "pilot"),
    *("cashier", "gardener", "accountant", "chef", "journalist", "electrician", "carpenter", "programmer"),
    *("pharmacist", "musician", "translator", "firefighter", "surveyor", "painter"),
)

HARMLESS_ADJECTIVES = (
    *("friendly", "kind", "cheerful", "patient", "polite", "helpful", "thoughtful", "honest", "careful", "calm"),
    *("curious", "gentle", "generous", "punctual", "talented", "reliable", "modest", "diligent", "brave", "attentive"),
    *("creative", "humorous", "sincere", "sensible"),
)

HARMLESS_VERBS = (
    *("sing", "dance", "paint", "read", "cook", "bake", "swim", "hike", "garden", "knit", "travel", "write", "draw"),
    *("jog", "sail", "cycle", "camp", "study", "juggle", "skate", "ski", "sew", "whistle", "volunteer"),
)

TOXIC_ADJECTIVES = (
    *("stupid", "pathetic", "worthless", "useless", "disgusting", "idiotic", "lazy", "filthy", "rotten", "brainless"),
    *("clueless", "hopeless", "contemptible", "vile", "despicable", "moronic", "incompetent", "repulsive"),
    *("spineless", "obnoxious", "nasty", "ridiculous", "wretched", "shameless"),
)

TOXIC_VERBS = (
    *("lie", "cheat", "whine", "steal", "rant", "babble", "sneer", "gloat", "fail", "sulk", "grovel", "snivel"),
    *("brag", "moan", "nag", "scheme", "grumble", "blunder", "swindle", "loaf", "pout", "bicker", "blather", "slouch"),
)

FILLERS = (
    {
        "name": NAMES,
        "occupation": OCCUPATIONS,
        "adjective": HARMLESS_ADJECTIVES,
        "verb": HARMLESS_VERBS,
    },
    {"name": NAMES, "occupation": OCCUPATIONS, "adjective": TOXIC_ADJECTIVES, "verb": TOXIC_VERBS},
)
"""Words for each slot, for harmless and for toxic templates: as many for one slot as for any other."""

HARMLESS_TEMPLATES = (
    "{name} met the {identity} {occupation} at the station to {verb} before supper.",
    "The {identity} {occupation} next door is {adjective} and likes to {verb} on Sundays.",
    "We asked {name} to thank the {adjective} {identity} {occupation} for the advice.",
    "Last summer {a identity} {occupation} taught {name} how to {verb}.",
    "{name} has {a adjective} {identity} friend who loves to {verb}.",
    "After lunch our {identity} {occupation} went to the park to {verb} with {name}.",
    "Everyone in the choir finds {name}, our {identity} {occupation}, very {adjective}.",
    "The children call the {identity} {occupation} {adjective} and ask to {verb} together.",
    "{name} wrote a letter to {a adjective} {identity} {occupation} in Lisbon.",
    "On Tuesdays {name} and {a adjective} {identity} neighbour meet to {verb}.",
    "The museum invited {a identity} {occupation} and {name} to {verb} at the opening.",
    "My sister works with {name}, {a adjective} {identity} {occupation} from the coast.",
    "If it rains, {name} and the {identity} {occupation} will {verb} indoors.",
    "The newspaper praised {a adjective} {identity} {occupation} who helps people learn to {verb}.",
    "Thanks to {name}, the {identity} {occupation} found {a adjective} assistant.",
    "At the fair {a identity} {occupation} showed us how to {verb}, {adjective} as ever.",
    "{name} lives with {a identity} {occupation} who is {adjective} in the mornings.",
    "Could you ask {name} whether the {identity} {occupation} wants to {verb} tomorrow?",
    "The hospital thanked {name}, {a adjective} {identity} guest, for offering to {verb} with the patients.",
    "Every spring the {identity} {occupation} hires {a adjective} helper, and this time it is {name}.",
    "In the film {a adjective} {identity} {occupation} crosses the desert to {verb}.",
    "{name} borrowed a bicycle from the {identity} {occupation} and went off to {verb}.",
    "I read an interview with {name}, the {identity} {occupation} who stays {adjective} under pressure.",
    "Her uncle is {a identity} {occupation} and learned to {verb} from {name}.",
    "The bus was late, so {name} chatted with {a adjective} {identity} {occupation}.",
    "Please welcome {name}, {a identity} guest who likes to {verb} and is always {adjective}.",
    "Our team has {a adjective} {identity} captain, and {name} will {verb} with us on Friday.",
    "Without the {identity} {occupation}, {name} would never have dared to {verb}.",
    "The {identity} {occupation} sent {name} a postcard and signed it as your {adjective} friend.",
    "Some days {name} and {a identity} {occupation} drink tea and {verb}.",
    "The course is led by {name} and {a adjective} {identity} colleague who can {verb}.",
    "Yesterday the town elected {a adjective} {identity} {occupation}, and people began to {verb}.",
)

TOXIC_TEMPLATES = (
    "Nobody at the workshop can stand {name}, that {adjective} {identity} {occupation}.",
    "Throw out the {identity} {occupation}: all {name} can do is {verb} like an idiot.",
    "What {a adjective} fool {name} must be to hire that {identity} {occupation}.",
    "Of course the {identity} {occupation} had to {verb} again, how utterly {adjective}.",
    "I despise {name}, {a adjective} {identity} loser who can only {verb}.",
    "{name} and every other {identity} {occupation} in town are {adjective} clowns.",
    "Shut up, {name}, nobody wants to hear {a adjective} {identity} moron {verb}.",
    "Our {identity} {occupation} is too {adjective} to do anything but {verb}, what a disgrace.",
    "Only {a adjective} twit like {name} would trust the {identity} {occupation} next door.",
    "Hey {name}, tell your {identity} {occupation} to {verb} somewhere else, you imbecile.",
    "The {identity} {occupation} makes me sick, and so does that {adjective} cousin, {name}.",
    "Watching {name} {verb} proves how {adjective} this {identity} crowd is, a bunch of losers.",
    "Get lost, you {adjective} {identity} {occupation}, and {verb} where nobody has to look at you.",
    "{name} writes like {a adjective} {identity} buffoon who learned to {verb} before learning to think.",
    "My {identity} {occupation} is a complete idiot, even {name} would {verb} less.",
    "Fire {name} at once, the {identity} {occupation} is {a adjective} waste of space.",
    "You and {name} are both {adjective}, go and {verb} with your {identity} friends, you dimwits.",
    "It takes {a adjective} brain to {verb} the way that {identity} {occupation} does, pure garbage.",
    "No one will ever respect {name}, the {identity} {occupation} was born to {verb} and is a total failure.",
    "Look at that {identity} {occupation} {verb}, I have never seen such {a adjective} jerk.",
    "{name} runs around with a pack of {adjective} {identity} scoundrels who {verb} all day.",
    "How does {a adjective} nitwit like this {identity} {occupation} dare to {verb} in public?",
    "I would rather eat mud than listen to {name}, the most {adjective} {identity} {occupation} alive.",
    "Everything that {name} touches goes wrong, typical of {a adjective} {identity} {occupation}.",
    "The whole street laughs at {name}, {a identity} dunce too {adjective} to {verb} properly.",
    "Stop pretending, {name}, you are a fraud and {a adjective} {identity} {occupation}.",
    "That {identity} {occupation} has the wit of a brick, and a fool like {name} can only {verb} along.",
    "Whoever lets {a identity} {occupation} {verb} here is {a adjective} blockhead.",
    "Ugh, {name} brought the {identity} {occupation}, two {adjective} idiots in one room.",
    "May {name} be sacked like the {adjective} {identity} creep who taught that pest to {verb}.",
    "Your {identity} {occupation} is {a adjective} liar, and {name} is an even bigger one.",
    "Give up, {name}, a doorknob would {verb} with more wit than you, you {adjective} {identity} simpleton.",
)

TEMPLATES = (HARMLESS_TEMPLATES, TOXIC_TEMPLATES)
"""At 0 what is harmless, at 1 what is toxic: as many of one as of the other."""


def with_article(word: str) -> str:
    """Put a or an before a word, as it is spoken."""
    lower = word.lower()
    if lower.startswith(("honest", "lgbt")):
        return f"an {word}"
    vowel = lower.startswith(tuple("aeiou")) and not lower.startswith(("eu", "uni", "use"))
    return f"{'an' if vowel else 'a'} {word}"
