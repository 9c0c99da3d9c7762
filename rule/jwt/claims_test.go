package jwt_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/rule/jwt"
)

// TestTimes checks the boundary values of exp, nbf and iat with a fake clock.
func TestTimes(t *testing.T) {
	a := algorithms()[9]
	at := time.Unix(today, 0)
	clock := func(now time.Time) func() time.Time { return func() time.Time { return now } }
	const claims = `{"nbf":1800000000,"iat":1799999990,"exp":1800000060}`
	for _, c := range []struct {
		name, claims string
		leeway       time.Duration
		now          time.Time
		want         bool
	}{
		{"long before", claims, 0, at.Add(-time.Hour), false},
		{"just before nbf", claims, 0, at.Add(-1), false},
		{"at nbf", claims, 0, at, true},
		{"just before exp", claims, 0, at.Add(time.Minute - 1), true},
		{"at exp", claims, 0, at.Add(time.Minute), false},
		{"just before nbf and leeway", claims, 30 * time.Second, at.Add(-30*time.Second - 1), false},
		{"at nbf and leeway", claims, 30 * time.Second, at.Add(-30 * time.Second), true},
		{"just before exp and leeway", claims, 30 * time.Second, at.Add(90*time.Second - 1), true},
		{"at exp and leeway", claims, 30 * time.Second, at.Add(90 * time.Second), false},
		{"issued just now", `{"iat":1800000000,"exp":1800000060}`, 0, at, true},
		{"issued ahead", `{"iat":1800000001,"exp":1800000060}`, 0, at, false},
		{"issued ahead by the leeway", `{"iat":1800000001,"exp":1800000060}`, time.Second, at, true},
		{"fractions before exp", `{"exp":1800000000.5}`, 0, at.Add(time.Second/2 - 1), true},
		{"fractions at exp", `{"exp":1800000000.5}`, 0, at.Add(time.Second / 2), false},
		{"with an exponent", `{"exp":1.80000006e9}`, 0, at, true},
		{"no exp", `{"nbf":1800000000}`, 0, at, false},
		{"exp is null", `{"exp":null}`, 0, at, false},
		{"exp is a string", `{"exp":"1800000060"}`, 0, at, false},
		{"exp is true", `{"exp":true}`, 0, at, false},
		{"exp is an object", `{"exp":{}}`, 0, at, false},
		{"exp is 0", `{"exp":0}`, 0, at, false},
		{"exp is negative", `{"exp":-1800000060}`, 0, at, false},
		{"exp is far below 0", `{"exp":-1e999}`, 0, at, false},
		{"exp far ahead", `{"exp":1e18}`, time.Hour, at, true},
		{"exp out of range", `{"exp":1e999}`, time.Hour, at, true},
		{"exp has many digits", `{"exp":` + strings.Repeat("9", 400) + `}`, 0, at, true},
		{"nbf is null", `{"exp":1800000060,"nbf":null}`, 0, at, false},
		{"nbf is a string", `{"exp":1800000060,"nbf":"0"}`, 0, at, false},
		{"nbf far ahead", `{"exp":1e999,"nbf":1e999}`, 0, at, false},
		{"iat is a list", `{"exp":1800000060,"iat":[1]}`, 0, at, false},
	} {
		v := verifier(t, pemOf(a.key.Public()), jwt.Config{Leeway: c.leeway, Clock: clock(c.now)})
		if got := accepted(t, v, issue(t, a, c.claims)); got != c.want {
			t.Errorf("%s: accepted = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestIssuerAndAudience(t *testing.T) {
	a := algorithms()[9]
	value := func(more string) string { return issue(t, a, `{"exp":1800003600`+more+`}`) }
	anyone, both := jwt.Config{}, jwt.Config{Issuer: "https://id.example", Audience: "api"}
	for _, c := range []struct {
		config jwt.Config
		more   string
		want   bool
	}{
		{anyone, ``, true},
		{anyone, `,"iss":"https://evil.example","aud":["x"]`, true},
		{anyone, `,"iss":1,"aud":{}`, true},
		{both, `,"iss":"https://id.example","aud":"api"`, true},
		{both, `,"iss":"https://id.example","aud":["web","api"]`, true},
		{both, ` , "aud" : [ "api" ] , "iss" : "https:\/\/id.example" `, true},
		{both, `,"iss":"https://id.example","aud":"web"`, false},
		{both, `,"iss":"https://id.example","aud":"API"`, false},
		{both, `,"iss":"https://id.example","aud":["web","ap","i"]`, false},
		{both, `,"iss":"https://id.example","aud":[]`, false},
		{both, `,"iss":"https://id.example","aud":""`, false},
		{both, `,"iss":"https://id.example","aud":null`, false},
		{both, `,"iss":"https://id.example","aud":["api",1]`, false},
		{both, `,"iss":"https://id.example","aud":{"api":"api"}`, false},
		{both, `,"iss":"https://id.example"`, false},
		{both, `,"iss":"https://id.example/","aud":"api"`, false},
		{both, `,"iss":["https://id.example"],"aud":"api"`, false},
		{both, `,"iss":null,"aud":"api"`, false},
		{both, `,"aud":"api"`, false},
		{both, `,"iss":"https://evil.example","iss":"https://id.example","aud":"api"`, false},
		{jwt.Config{Issuer: "https://id.example"}, `,"iss":"https://id.example","aud":["x"]`, true},
		{jwt.Config{Audience: "api"}, `,"iss":"https://evil.example","aud":"api"`, true},
	} {
		if got := accepted(t, verifier(t, pemOf(a.key.Public()), c.config), value(c.more)); got != c.want {
			t.Errorf("%+v with %s: accepted = %v, want %v", c.config, c.more, got, c.want)
		}
	}
}

// TestLookup checks the claims that rules see.
func TestLookup(t *testing.T) {
	a := algorithms()[9]
	v := verifier(t, pemOf(a.key.Public()), jwt.Config{})
	claims, ok := v.Verify(issue(t, a, ` {
		"exp": 1800003600, "sub": "ann", "tenant" : "caf\u00e9 \"x\"", "quoted\u0020name": "y", "": "unnamed",
		"level": 12, "half": 0.50, "big": 12345678901234567890, "less": -1e3, "zero": 0,
		"admin": true, "guest": false, "one": "1", "yes": "true", "typed": "number:12", "twice": "string:a", "nothing": null, "empty": "",
		"roles": ["a"], "address": {"sub": "bob"}, "spoilt": "a\ud800", "raw": "a`+"\xff"+`", "Sub": "carl"
	} `))
	if !ok {
		t.Fatal("the token was refused")
	}
	for name, want := range map[string]string{
		"sub": "ann", "Sub": "carl", "tenant": `café "x"`, "quoted name": "y", "": "unnamed", "exp": "number:1800003600",
		"level": "number:12", "half": "number:0.50", "big": "number:12345678901234567890", "less": "number:-1e3", "zero": "number:0",
		"admin": "boolean:true", "guest": "boolean:false", "one": "1", "yes": "true", "typed": "string:number:12", "twice": "string:string:a",
		"nothing": "", "empty": "", "roles": "", "address": "", "spoilt": "", "raw": "", "SUB": "", "address.sub": "", "other": "",
	} {
		if got, ok := claims.Lookup(name); got != want || ok != (want != "") {
			t.Errorf("claim %q: got %q, %v, want %q", name, got, ok, want)
		}
	}
}

// TestClaimsOfAnotherShape checks that signed tokens with invalid claims are refused.
func TestClaimsOfAnotherShape(t *testing.T) {
	a := algorithms()[9]
	v := verifier(t, pemOf(a.key.Public()), jwt.Config{})
	crowd := func(n int) string {
		var text strings.Builder
		text.WriteString(`{"exp":1800003600`)
		for i := range n - 1 {
			fmt.Fprintf(&text, `,"c%d":0`, i)
		}
		return text.String() + "}"
	}
	for claims, want := range map[string]bool{
		good:       true,
		crowd(100): true,
		crowd(101): false,
		``:         false, `null`: false, `[]`: false, `"exp"`: false, `1800003600`: false, `{`: false, `{"exp":1800003600,}`: false,
		good + `x`:  false,
		good + good: false,
		`{"exp":1800003600,"sub":"ann","sub":"bob"}`:        false,
		`{"exp":1800003600,"sub":"ann","s\u0075b":"bob"}`:   false,
		`{"exp":1,"exp":1800003600}`:                        false,
		`{"exp":1800003600,"a":{},"a":null}`:                false,
		`{"exp":1800003600,"a":{"b":1,"b":2}}`:              true, // duplicates inside a claim are ignored
		`{"EXP":1800003600}`:                                false,
		`{"exp":1800003600,"a":` + deep(1000) + `}`:         true,
		strings.Repeat(`{"exp":`, 500) + `1800003600` + `}`: false,
	} {
		if got := accepted(t, v, issue(t, a, claims)); got != want {
			t.Errorf("%.80s: accepted = %v, want %v", claims, got, want)
		}
	}
}

func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
