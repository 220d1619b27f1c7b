openapi-generator-cli generate -i ../openapi.json -g java --library native -o .
mvn -q -B compile dependency:copy-dependencies
java -cp 'target/classes:target/dependency/*' Main
