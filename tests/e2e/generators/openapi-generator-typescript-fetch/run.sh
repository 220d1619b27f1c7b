openapi-generator-cli generate -i ../openapi.json -g typescript-fetch -o client
tsc --strict --skipLibCheck --target es2022 --module nodenext main.ts client/*/*.ts
node main.js
