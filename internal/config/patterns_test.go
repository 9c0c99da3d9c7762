package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestPatternsAreFaults checks that a text that looks like a pattern is never read as a literal, and that the fix
// names a form that works.
func TestPatternsAreFaults(t *testing.T) {
	const rule, share = "rules: [{name: a, key: [ip], limits: [5/s], match: {%s}}]", "fair_share: {client: 'header:X-A', capacity: 10, %s}"
	over := func(key string) string {
		return "rules: [{name: a, key: [" + key + "], limits: [5/s], overrides: {%s: {limits: [6/s]}}}]"
	}
	for _, row := range []struct{ file, text, fix string }{
		{rule, `methods: ['!OPTIONS']`, "add not: {methods: [OPTIONS]} to the match, or list the methods that count, like [GET, POST]"},
		{rule, `methods: ['not:OPTIONS']`, "list the methods that count"},
		{rule, `methods: ['*']`, "leave methods out for every method"},
		{rule, `methods: [ANY]`, "leave methods out for every method"},
		{rule, `methods: ['GET|POST']`, "write [GET, POST]"},
		{rule, `methods: ['GET,POST']`, "write [GET, POST]"},
		{rule, `methods: ['GET POST']`, "write [GET, POST]"},
		{rule, `methods: ['(GET|POST)']`, "write [GET, POST]"},
		{rule, `methods: ['^GET$']`, "write a method like GET"},
		{rule, `methods: [OPTION]`, `did you mean OPTIONS? If clients send exactly this, write "=OPTION"`},
		{rule, `methods: [Get]`, "write GET"},
		{rule, `methods: [get]`, "write GET"},
		{rule, `methods: [BREW]`, `write "=BREW"`},
		{rule, `methods: ['=']`, "write a method"},
		{rule, `path: '/api/:id'`, `write "/api/{id}"`},
		{rule, `path: '/api/:id/orders/*'`, `write "/api/{id}/orders/*"`},
		{rule, `path: '/users/<int:id>'`, `write "/users/{id}"`},
		{rule, `path: '/users/[id]'`, `write "/users/{id}"`},
		{rule, `path: '/api/[0-9]+'`, `write "re:/api/[0-9]+"`},
		{rule, `path: '/api/(a|b)'`, `write "re:/api/(a|b)"`},
		{rule, `path: '/api/(.+)'`, `write "re:/api/(.+)"`},
		{rule, `path: '/api/.+'`, `write "re:/api/.+"`},
		{rule, `path: '/api/\d+'`, `write "re:/api/\\d+"`},
		{rule, `path: '/api|/v1'`, `write "re:/api|/v1"`},
		{rule, `path: '/v1/a$'`, `write "/v1/a"`},
		{rule, `path: '^/v1/.*$'`, `write "re:/v1/.*"`},
		{rule, `path: '/^/v1/.*$'`, `write "re:/v1/.*"`},
		{rule, `path: '~^/api'`, `write "re:/api.*"`},
		{rule, `path: '~ ^/api'`, `write "re:/api.*"`},
		{rule, `path: '/~^/api'`, `write "re:/api.*"`},
		{rule, `path: 're:^/api'`, `write "re:/api.*"`},
		{rule, `path: '/re:^/api'`, `write "re:/api.*"`},
		{rule, `path: '!/healthz'`, `add not: {path: "/healthz"} to the match`},
		{rule, `path: '/!/healthz'`, `add not: {path: "/healthz"} to the match`},
		{rule, `path: 'not:/healthz'`, `add not: {path: "/healthz"} to the match`},
		{rule, `path: '**'`, `write "/*" for every path`},
		{rule, `path: '*.php'`, `write "re:/.*\\.php"`},
		{rule, `path: '/files/...'`, `write "/files/**"`},
		{rule, `path: '/users/{id:int}'`, "write {id:[0-9]+} for digits"},
		{rule, `path: '/a/**/b'`, `write "re:/a/(.*/)?b"`},
		{rule, `path: 're:/a$/b'`, "has ^ or $ in the middle"},
		{rule, `path: 'GET /a', methods: [GET]`, "write the method in one of them"},
		{rule, `path: 'BREW /a'`, `write "/BREW /a"`},
		{rule, `path: '='`, "write the path"},
		{rule, `path: '=search'`, `write "=/search"`},
		{rule, `hosts: ['!admin.example.com']`, "list the hosts that count"},
		{rule, `hosts: ['not:admin.example.com']`, "list the hosts that count"},
		{rule, `hosts: ['~^api']`, `write "re:api.*"`},
		{rule, `hosts: ['(a|b).example.com']`, `write "re:(a|b).example.com"`},
		{rule, `hosts: ['.example.com']`, `write "*.example.com"`},
		{rule, `headers: {X-A: '!x'}`, `"=!x"`},
		{rule, `headers: {X-A: '~x'}`, `"=~x"`},
		{rule, `headers: {X-A: 're:bot'}`, `write "bot", or "*bot*"`},
		{rule, `headers: {X-A: 'not:bot'}`, `"=not:bot"`},
		{rule, `headers: {X-A: 'free|paid'}`, `write "re:free|paid"`},
		{rule, `headers: {X-A: '^free'}`, `"=^free"`},
		{rule, `headers: {X-A: 'free$'}`, `"=free$"`},
		{rule, `headers: {X-A: '[0-9]+'}`, `"=[0-9]+"`},
		{rule, `headers: {X-A: '\d+'}`, `"=\\d+"`},
		{rule, `headers: {X-A: 'v.+'}`, `"=v.+"`},
		{rule, `headers: {X-A: '>=2'}`, `"=>=2"`},
		{rule, `headers: {X-A: 'fre?'}`, `"=fre?"`},
		{rule, `headers: {X-A: '='}`, `write "=="`},
		{rule, `headers: {'X-*': 'a'}`, "write the whole name"},
		{rule, `descriptors: {path: '/users/:id'}`, `"=/users/:id"`},
		{rule, `descriptors: {user: '!a'}`, `"=!a"`},
		{rule, `descriptors: {'user*': 'a'}`, "write the whole name"},
		{rule, `domain: '*'`, "leave domain out"},
		{share, `match: {methods: [OPTION]}`, "did you mean OPTIONS?"},
		{share, `exempt: {methods: [OPTION]}`, "did you mean OPTIONS?"},
		{share, `exempt: {methods: ['!GET']}`, "list the methods"},
		{share, `weights: {'premium-*': 2}`, `"=premium-*"`},
		{over("'header:X-A'"), `'^premium'`, `write "re:premium.*", or "=^premium" for exactly`},
		{over("'header:X-A'"), `'!free'`, `write "free" with limits of its own, or "=!free" for exactly`},
		{over("'header:X-A'"), `'not:re:('`, `write the values that have limits of their own, or "=not:re:(" for exactly`},
		{over("method"), `OPTION`, "did you mean OPTIONS?"},
		{over("method"), `'get|post|GET'`, `write "re:GET|POST"`},
		{over("method"), `'GET|GET'`, "write a method like GET"},
		{over("method"), `'a|b'`, "write a method like GET"},
		{over("method"), `ANY`, "write a method like GET"},
		{over("method"), `'!OPTIONS'`, `write "OPTIONS" with limits of its own`},
		{over("method"), `'!BREW'`, `write "=BREW" with limits of its own`},
		{over("path"), `'/users/:id'`, `write "/users/{id}"`},
		{over("path"), `'!/users'`, `the rule's limits apply to all other values: write "/users" with limits of its own`},
		{over("path"), `'GET /users'`, `write "/users"`},
		{over("host"), `'!*.example.com'`, `write "*.example.com" with limits of its own`},
		{over("host"), `.example.com`, `write "*.example.com" for every name below it`},
		{over("host"), `'*'`, "write a host like api.example.com"},
		{"rules: [{name: a, key: ['header:X-*'], limits: [5/s]%s}]", ``, "write the whole name"},
		{"rules: [{name: a, key: ['cookie:*'], limits: [5/s]%s}]", ``, "write the whole name"},
		{"rules: [{name: a, key: ['descriptor:*'], limits: [5/s]%s}]", ``, "write the whole name"},
		{"domains: {shop: {descriptors: [{key: path, value: %s, limits: 5/s}]}}", `'/users/{id}'`, `"=/users/{id}"`},
		{"domains: {shop: {descriptors: [{key: path, value: %s, limits: 5/s}]}}", `'/users/{id}/*'`, `"wildcard:/users/{id}/*"`},
		{"domains: {shop: {descriptors: [{key: path, value: %s, limits: 5/s}]}}", `'^/users'`, `"=^/users"`},
		{"domains: {shop: {descriptors: [{key: path, value: %s, limits: 5/s}]}}", `'!/users'`, `"=!/users"`},
		{"domains: {shop: {descriptors: [{key: path, value: %s, limits: 5/s}]}}", `'re:/users.*'`, `"wildcard:re:/users.*"`},
		{"domains: {shop: {descriptors: [{key: path, value: %s, limits: 5/s}]}}", `'wildcard:/users'`, `"=wildcard:/users"`},
		{"domains: {shop: {descriptors: [{key: path, value: %s, limits: 5/s}]}}", `'='`, `write "=="`},
		{"domains: {shop: {descriptors: [{key: %s, limits: 5/s}]}}", `'path*'`, `"=path*"`},
		{"domains: {%s: {descriptors: [{key: path, limits: 5/s}]}}", `'*'`, `"=*"`},
		{"domains: {%s: {descriptors: [{key: path, limits: 5/s}]}}", `'shop-*'`, `"=shop-*"`},
	} {
		text := "version: 1\n" + fmt.Sprintf(row.file, row.text) + "\n"
		_, err := Parse("f", []byte(text))
		switch {
		case err == nil:
			t.Errorf("%s: accepted", text)
		case !strings.Contains(err.Error(), row.fix):
			t.Errorf("%s: the fault does not say %s:\n%v", text, row.fix, err)
		case strings.Count(err.Error(), "\nf:") > 0:
			t.Errorf("%s: several faults:\n%v", text, err)
		}
	}
}
