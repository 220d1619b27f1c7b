openapi-python-client generate --path ../openapi.json --output-path generated --meta none --fail-on-warning
python -m compileall -q generated
python main.py
