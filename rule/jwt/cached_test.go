package jwt_test

import (
	"fmt"
	"testing"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"

	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/rule/jwt"
)

// TestCachedUntilItExpires checks that a cached token is refused after exp plus leeway.
func TestCachedUntilItExpires(t *testing.T) {
	a := algorithms()[9]
	for _, leeway := range []time.Duration{0, 30 * time.Second} {
		now := time.Unix(today, 0)
		v := verifier(t, pemOf(a.key.Public()), jwt.Config{Leeway: leeway, Clock: func() time.Time { return now }})
		token := issue(t, a, good)
		for _, step := range []struct {
			at   time.Duration
			want bool
		}{{0, true}, {time.Minute, true}, {time.Hour + leeway - 1, true}, {time.Hour + leeway, false}, {time.Hour + leeway - 1, true}, {24 * time.Hour, false}} {
			now = time.Unix(today, 0).Add(step.at)
			if _, ok := v.Verify(token); ok != step.want {
				t.Errorf("leeway %v, %v later: accepted = %v, want %v", leeway, step.at, ok, step.want)
			}
		}
	}
}

// TestInventedTokensDriveOutNone checks that a cache hit allocates nothing, before and
// after a flood of invalid tokens. No allocation means that the token is still cached.
func TestInventedTokensDriveOutNone(t *testing.T) {
	if race.On {
		return
	}
	for _, a := range algorithms() {
		v := verifier(t, pemOf(a.key.Public()), jwt.Config{MaxCached: 16})
		token := issue(t, a, good)
		cost := func() float64 {
			return testing.AllocsPerRun(10, func() {
				claims, ok := v.Verify(token)
				if subject, _ := claims.Lookup("sub"); !ok || subject != "ann" {
					t.Errorf("%s: a valid token was refused", a.method.Alg())
				}
			})
		}
		if n := cost(); n != 0 {
			t.Errorf("%s: a hit has %v allocations, want 0", a.method.Alg(), n)
		}
		for i := range 500 {
			if _, ok := v.Verify(token[:len(token)-8] + encode(fmt.Appendf(nil, "%06d", i))); ok {
				t.Fatal("an invalid token was accepted")
			}
		}
		if n := cost(); n != 0 {
			t.Errorf("%s: after the flood, a hit has %v allocations, want 0", a.method.Alg(), n)
		}
	}
}

// TestLongTokenIsHashedInPlace checks that a hit of the longest token allocates nothing.
func TestLongTokenIsHashedInPlace(t *testing.T) {
	if race.On {
		return
	}
	a := algorithms()[9]
	v := verifier(t, pemOf(a.key.Public()), jwt.Config{})
	token := issue(t, a, fmt.Sprintf(`{"exp":1800003600,"pad":"%06000d"}`, 0))
	if n := testing.AllocsPerRun(10, func() { v.Verify(token) }); n != 0 {
		t.Errorf("a hit with a token of %d bytes has %v allocations, want 0", len(token), n)
	}
}

// TestNothingCached checks that a Verifier without a cache verifies each token each time.
func TestNothingCached(t *testing.T) {
	a := algorithms()[9]
	v := verifier(t, pemOf(a.key.Public()), jwt.Config{MaxCached: -1})
	token := issue(t, a, good)
	if n := testing.AllocsPerRun(10, func() {
		if _, ok := v.Verify(token); !ok {
			t.Error("the token was refused")
		}
	}); n == 0 {
		t.Error("the token was cached")
	}
}

func BenchmarkVerify(b *testing.B) {
	const claims = `{"iss":"https://id.example","sub":"user-1234567","aud":["api","web"],"exp":1800003600,"iat":1799999999,` +
		`"scope":"read write","tenant":"acme","client_id":"app-7","jti":"b7d8e3f0-7d4a-4a53-8f1e-0d3b6a1c2d3e"}`
	for _, a := range algorithms() {
		switch a.method {
		case gojwt.SigningMethodRS256, gojwt.SigningMethodPS256, gojwt.SigningMethodES256, gojwt.SigningMethodES512, gojwt.SigningMethodEdDSA:
		default:
			continue
		}
		token := issue(b, a, claims)
		invented := token[:len(token)-12] + "AAAAAAAAAAAA"
		for _, c := range []struct {
			name, token string
			cached      int
			want        bool
		}{{"uncached", token, -1, true}, {"invented", invented, 0, false}, {"cached", token, 0, true}} {
			b.Run(a.method.Alg()+"/"+c.name, func(b *testing.B) {
				v := verifier(b, pemOf(a.key.Public()), jwt.Config{MaxCached: c.cached, Clock: func() time.Time { return time.Unix(today, 0) }})
				b.ReportAllocs()
				for b.Loop() {
					if _, ok := v.Verify(c.token); ok != c.want {
						b.Fatal("wrong answer")
					}
				}
			})
		}
	}
}
