openapi-generator-cli generate -i ../openapi.json -g python -o .
python -m compileall -q openapi_client
python main.py
