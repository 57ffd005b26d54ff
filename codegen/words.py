# SPDX-License-Identifier: Apache-2.0
"""The words of the description language, and the form of their arguments. api/vocabulary.h defines each word."""
import re

DIRECTIONS = {"IN", "IN_N", "IN_BYTES", "IN_STRING", "IN_OPTIONS", "OUT", "OUT_N", "OUT_BYTES", "INOUT", "BY_HOOK"}
SOURCES = {"FIELD", "COMPUTE", "FIXED"}
QUALIFIERS = {"OPT", "NEW", "STATIC", "DROP", "STORE", "WITHIN", "CONVERT"} | SOURCES
ACCOUNT = {"ALLOCATES", "FREES", "LAUNCHES", "COPIES", "CHARGES_NOTHING"}
ORDER = {"AFTER_ALL", "BEFORE_ALL", "BARRIER", "AFTER_MEMORY", "QUERY", "UNORDERED", "NO_DTOH_WAIT", "AWAITS_STREAM", "AWAITS_HOST",
         "ASYNC_LAUNCH"}
WORK = {"UNBOUNDED", "COMPILES", "WRITES_DEVICE_ONLY", "INVALIDATES_CHECKS", "TRACE_NAME", "OWN_RESULT"}
OPTIONS = {"VIA", "ALIAS", "SERVER_HOOK", "CLIENT_HOOK", "BULK_IN", "BULK_OUT", "CAPTURE", "SYNCHRONIZES", "CLIENT_OBJECT", "REQUIRE",
           "RETURNS", "FORWARD", "SIGNAL_SAFE", "QUICK", "RATE_LIMITED"} | ACCOUNT | ORDER | WORK
KIND_WORDS = {"TYPES", "COST", "ORDERED", "LOOKUP", "DESTROY", "LIFETIME"}
CLIENT_OBJECT_OPTIONS = {"TYPES", "STRUCT", "ENTER", "KIND", "LEAVE", "HEADER"}
CAPTURE = {"node", "refused", "declined", "unsafe", "default_stream", "unaffected"}
COMPLETIONS = {"POST", "WAIT"}
SYMBOL_WORDS = {"GP_SYMBOL": "", "GP_SYMBOL_PTDS": "ptds", "GP_SYMBOL_PTSZ": "ptsz"}
DRIVER_WORDS = {"GP_DRIVER": True, "GP_DRIVER_OPTIONAL": False}
UNSUPPORTED_WORDS = {"GP_UNSUPPORTED", "GP_UNSUPPORTED_SILENT"}
PRECHECK_WORDS = {"VALUE", "HANDLE", "CONTEXT", "DEVICE", "INITIALIZED", "CURRENT", "LEGACY"}  # and WITHIN

NAME = r"[A-Za-z_]\w*"
COUNT = r"[1-9]\d{0,8}"
SIZE = rf"(?:{COUNT}|{NAME})"
NUMBER = r"-?(?:0x[0-9a-fA-F]+|0|[1-9]\d*)"
CONSTANT = r"(?:CU|CUDA)_\w+"
VALUE = rf"(?:{NUMBER}|{CONSTANT}|NULL|true|false)"
CLIENT_VALUE = rf"(?:{VALUE}|GPC_\w+)"  # in code of the client
MEMBER = rf"{NAME}(?:(?:\.|->){NAME})*"


def repeat_form(form):
    return rf"{form}(?:, {form})*"


# word -> (regular expression of its argument, its description in messages)
FORMS = {
    **dict.fromkeys(("IN_N", "OUT_N", "IN_BYTES", "OUT_BYTES"), (SIZE, "a number above 0 or a parameter")),
    **dict.fromkeys(("ALLOCATES", "FREES", "COPIES", "BARRIER"), (NAME, "a parameter")),
    "IN_OPTIONS": (f"{NAME}, {NAME}", "two parameters: the count, and the values"),
    **dict.fromkeys(("FIELD", "STORE"), (MEMBER, "a member of the client object")),
    **dict.fromkeys(("COMPUTE", "CONVERT", "FORWARD"), (rf"{NAME}(?:, (?:{NAME}|{VALUE}))*", "a function and its arguments")),
    "FIXED": (CLIENT_VALUE, "a number or a constant"),
    "WITHIN": (f"{CLIENT_VALUE}, {CLIENT_VALUE}", "the minimum and the maximum"),
    **dict.fromkeys(("VIA", "ALIAS", "TYPES"), (repeat_form(NAME), "names")),
    **dict.fromkeys(("CAPTURE", "SYNCHRONIZES", "DESTROY", "LIFETIME", "CLIENT_OBJECT", "STRUCT", "ENTER", "KIND", "LEAVE"), (NAME, "a name")),
    "COST": (r"[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5]", "a number of bytes from 1 to 65535"),
    "REQUIRE": (f"{MEMBER}, {repeat_form(CLIENT_VALUE)}", "a member and its values"),
    "RETURNS": (r"CUDA_(?:SUCCESS|ERROR_\w+)", "a CUresult"),
    "TRACE_NAME": (r'"[^"]+"', "a text in quotes"),
    "HEADER": (repeat_form(r'"[^"]+"'), "file names in quotes"),
}
REPEAT = {"COMPUTE", "CONVERT", "FORWARD", "IN_OPTIONS", "WITHIN"}  # words whose list may have duplicates

# word -> (regular expression of an element after the name, its description in messages)
TYPE_WORDS = {
    "GP_ENUM": (r"(?!)", "the type alone"),
    "GP_OPTIONS": (rf"(?:CLIENT_ONLY )?{CONSTANT}", "an option, or CLIENT_ONLY and an option"),
    "GP_SET": (VALUE, "a value"),
}


def find_misfit(word, elements):
    """Returns the error in the argument of a word, or None."""
    form, what = FORMS[word]
    text = ", ".join(elements)
    if not re.fullmatch(form, text):
        return f"{word}({text}): expected {what}"
    twice = None if word in REPEAT else next((e for e in elements if elements.count(e) > 1), None)
    return f"{word}({text}): duplicate {twice}" if twice else None
