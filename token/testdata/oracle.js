// Asks Hugging Face's tokenizers library. Usage: node oracle.js MODULES < request > answer
// MODULES is the node_modules folder that holds the npm package "tokenizers". Request: {"tokenizers": [paths], "texts": [..], "ids": [[..], ..]}; answer, for
// each tokenizer: {"encoded": ids of each text without added special tokens, "decoded": text of each of ids, "seconds", "bytes" of encoding}.
const {Tokenizer} = require(require('path').join(process.argv[2], 'tokenizers'))
const fs = require('fs')

async function main() {
  const request = JSON.parse(fs.readFileSync(0, 'utf8'))
  const answer = []
  for (const path of request.tokenizers) {
    const t = Tokenizer.fromFile(path)
    const encoded = [], decoded = []
    let bytes = 0
    const start = process.hrtime.bigint()
    for (const text of request.texts) {
      encoded.push((await t.encode(text, null, {addSpecialTokens: false})).getIds())
      bytes += Buffer.byteLength(text)
    }
    const seconds = Number(process.hrtime.bigint() - start) / 1e9
    for (const ids of request.ids || []) decoded.push(await t.decode(ids, false))
    answer.push({encoded, decoded, seconds, bytes})
  }
  process.stdout.write(JSON.stringify(answer))
}
main()
