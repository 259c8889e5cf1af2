module heddle

go 1.26.0

require github.com/alecthomas/kong v1.17.0

require golang.org/x/sys v0.50.0

require golang.org/x/text v0.44.0
