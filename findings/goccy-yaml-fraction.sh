#!/bin/bash
# Product: github.com/goccy/go-yaml v1.19.2.
# Guess:   A number with a fraction in an int field is an error, as in
#          gopkg.in/yaml.v3 ("cannot unmarshal !!float"). A string field gets the
#          text of the file: "1.0" and "010".
# Happens: 1.5 in an int field becomes 1 without an error. A string field gets the
#          number printed anew: 1.0 becomes "1" and 010 becomes "8".
# Follows: "limit: 0.5" means a limit of 0 and refuses all requests; "limit: 1.9"
#          is nearly half of what was written. A limiter should read its numbers from
#          the text of the node and reject what does not fit. Keys and versions that
#          look like numbers need quotes.
set -eu
want='int 1.5=1 0.5=0, string 1.0="1" 010="8"'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'GO'
module finding

go 1.26

require github.com/goccy/go-yaml v1.19.2
GO
cat >main.go <<'GO'
package main

import (
	"fmt"

	"github.com/goccy/go-yaml"
)

func number(text string) string {
	var v struct{ Limit int }
	if err := yaml.UnmarshalWithOptions([]byte("limit: "+text), &v, yaml.Strict()); err != nil {
		return "error"
	}
	return fmt.Sprint(v.Limit)
}

func str(text string) string {
	var v struct{ Key string }
	if err := yaml.UnmarshalWithOptions([]byte("key: "+text), &v, yaml.Strict()); err != nil {
		return "error"
	}
	return fmt.Sprintf("%q", v.Key)
}

func main() {
	fmt.Printf("int 1.5=%s 0.5=%s, string 1.0=%s 010=%s\n", number("1.5"), number("0.5"), str("1.0"), str("010"))
}
GO
go mod tidy >log 2>&1 || { cat log; exit 1; }
echo "version: go-yaml v1.19.2, $(go env GOVERSION)"
got=$(go run .)
echo "decoded with yaml.Strict(): $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: a fraction is cut off, and a text is rewritten"
