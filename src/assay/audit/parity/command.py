"""placeholder"""


def run(): ...
