# The dependencies are compiled once, the client anew.
export CARGO_TARGET_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/outbox-generators
export CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0
options=supportAsync=false,reqwestDefaultFeatures=
openapi-generator-cli generate -i ../openapi.json -g rust -p $options -o .
cargo clean -q --locked -p openapi
cargo run -q --locked --example main
