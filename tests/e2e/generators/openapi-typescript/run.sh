openapi-typescript ../openapi.json -o client.ts
tsc --strict --skipLibCheck --target es2022 --module nodenext main.ts
node main.js
