"""Object labels (those of COCO), found by their plural and by synonyms. Pure."""

LABELS = frozenset((
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow",
    "elephant", "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee",
    "skis", "snowboard", "sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard",
    "tennis racket", "bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple",
    "sandwich", "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch",
    "potted plant", "bed", "dining table", "toilet", "tv", "laptop", "mouse", "remote", "keyboard", "cell phone",
    "microwave", "oven", "toaster", "sink", "refrigerator", "book", "clock", "vase", "scissors", "teddy bear",
    "hair drier", "toothbrush"))  # fmt: skip
SYNONYMS = {
    "airplane": ("aeroplane", "plane", "aircraft", "jet"),
    "bicycle": ("bike", "cycle"),
    "boat": ("ship", "sailboat", "yacht"),
    "bus": ("coach",),
    "car": ("automobile", "auto"),
    "cat": ("kitten",),
    "cell phone": ("mobile phone", "phone", "smartphone", "cellphone", "mobile"),
    "couch": ("sofa",),
    "cow": ("cattle",),
    "dining table": ("table",),
    "dog": ("puppy",),
    "donut": ("doughnut",),
    "hair drier": ("hair dryer", "hairdryer"),
    "handbag": ("purse", "bag"),
    "laptop": ("notebook computer",),
    "motorcycle": ("motorbike",),
    "person": ("people", "human", "man", "men", "woman", "women", "child", "children"),
    "potted plant": ("plant", "houseplant"),
    "refrigerator": ("fridge",),
    "sports ball": ("ball", "football"),
    "traffic light": ("stoplight",),
    "truck": ("lorry",),
    "tv": ("television", "monitor", "screen"),
}
_MEANT = {word: label for label, others in SYNONYMS.items() for word in others}
_IRREGULAR = {"knives": "knife", "mice": "mouse", "buses": "bus", "scissors": "scissors", "skis": "skis"}

Words = tuple[str, ...]


def labels_like(said: Words, *, known_only: bool) -> list[Words]:
    """Other labels that these words mean: their singular, or the label of a synonym; perhaps only labels of the set."""
    text = " ".join(said)
    meant = dict.fromkeys(label for form in (text, *_singular(text)) for label in (form, _MEANT.get(form, "")) if label)
    found = [label for label in meant if label != text and (not known_only or label in LABELS)]
    return [tuple(label.split(" ")) for label in found]


def _singular(text: str) -> list[str]:
    before, _, last = text.rpartition(" ")
    start = f"{before} " if before else ""
    if last in _IRREGULAR:
        return [start + _IRREGULAR[last]]
    if last.endswith("ies") and len(last) > 4:
        return [start + last[:-3] + "y"]
    if last.endswith(("sses", "shes", "ches", "xes", "zes")):
        return [start + last[:-2]]
    return [start + last[:-1]] if last.endswith("s") and not last.endswith("ss") and len(last) > 3 else []
