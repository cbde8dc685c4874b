"""The keys of a ledger's rows on DynamoDB, and the lists of the index `by_list`."""

from rushes.aws.table import Item, Key

WORKERS, OWED, UNFINISHED, DUE, PARKED, HELD = "workers", "owed", "unfinished", "due", "parked", "held"


def job_key(job: str) -> Key:
    """The key of a job's counters and state: every completion writes them, so they are small."""
    return f"job#{job}", "job"


def details_key(job: str) -> Key:
    """The key of the rest of a job."""
    return f"job#{job}", "details"


def task_key(task: str) -> Key:
    """The key of a task: with its job, which its id begins with."""
    return f"job#{task.partition('.')[0]}", f"task#{task}"


def task_of(item: Item) -> str:
    """The task that an item of a list stands for."""
    return str(item["sk"]).removeprefix("task#")


def job_of(item: Item) -> str:
    """The job that an item belongs to."""
    return str(item["pk"]).removeprefix("job#")


def worker_key(worker: str) -> Key:
    """The key of a worker."""
    return f"worker#{worker}", "worker"


def blob_key(name: str) -> Key:
    """The key of a blob key that tasks need."""
    return f"key#{name}", "key"


def result_key(owner: str, key: str) -> Key:
    """The key of a result."""
    return f"result#{owner}#{key}", "result"


def queue_list(owner: str, queue: str) -> str:
    """The list of an owner's jobs of a queue, in the index by owner and age."""
    return f"jobs#{owner}#queue#{queue}"


def ready_list(lane: str) -> str:
    """The list of tasks that a claim in that lane may take."""
    return f"ready#{lane}"


def held_rank(worker: str, number: int, task: str) -> str:
    """The rank in the list of all that is held: by worker, so that what nobody knows of is found as well."""
    return f"{worker}#{number:012d}#{task}"


def facts_key(job: str, fence: int) -> Key:
    """The key of what an attempt found out, beside its drafts."""
    return f"job#{job}", f"plan#{fence:08d}"
