"""x"""


def main() -> int:
    return 0
