#!/bin/bash
# Product: github.com/prometheus/statsd_exporter v0.31.0, package mapper.
# Guess:   The first mapping that matches wins, in the order of the file.
# Happens: The order counts only among mappings of one kind. All glob mappings are
#          tried before all regex mappings, so a regex at the top of the file
#          loses against a glob at its end. With both of one kind, the first wins.
# Follows: A regex at the top that drops or renames a limiter's metrics has no
#          effect on names that a glob below also matches. Exceptions and general
#          rules of one file should use one match_type.
set -eu
want='regex then glob: second; regex then regex: first; glob then glob: first'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'GO'
module finding

go 1.26

require github.com/prometheus/statsd_exporter v0.31.0
GO
cat >main.go <<'GO'
package main

import (
	"fmt"

	"github.com/prometheus/statsd_exporter/pkg/mapper"
)

// winner returns the name of the mapping that the counter limiter.api.refused gets.
func winner(first, second string) string {
	var m mapper.MetricMapper
	err := m.InitFromYAMLString("mappings:\n- " + first + "\n  name: first\n- " + second + "\n  name: second\n")
	if err != nil {
		panic(err)
	}
	mapping, _, ok := m.GetMapping("limiter.api.refused", mapper.MetricTypeCounter)
	if !ok {
		return "none"
	}
	return mapping.Name
}

func main() {
	const (
		glob  = "match: limiter.api.*\n  match_type: glob"
		wide  = "match: limiter.*.*\n  match_type: glob"
		regex = "match: limiter\\.[a-z]+\\.refused\n  match_type: regex"
		any   = "match: limiter\\..*\n  match_type: regex"
	)
	fmt.Printf("regex then glob: %s; regex then regex: %s; glob then glob: %s\n", winner(regex, glob), winner(regex, any), winner(wide, glob))
}
GO
go mod tidy >log 2>&1 || { cat log; exit 1; }
echo "version: statsd_exporter v0.31.0, $(go env GOVERSION)"
got=$(go run .)
echo "the mapping that wins: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: globs go before regexes, whatever the file's order"
