module heddle

go 1.26

require github.com/alecthomas/kong v1.17.0

require github.com/ebitengine/purego v0.11.3 // indirect
