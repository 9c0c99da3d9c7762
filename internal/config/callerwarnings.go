package config

import (
	"fmt"
	"strings"
	"time"
)

// CallerWarnings tells what is probably not meant about callers, which AllCallers gives: callers without a listener that
// asks for their proof, a limit of callers without one, callers whose time is over, and no callers where a listener asks for
// a proof. There are at most three texts.
func (c *Config) CallerWarnings(all []Caller, now time.Time) []string {
	if c.Server == nil {
		return nil
	}
	asked := c.asked()
	switch {
	case asked == 0 && len(all) > 0:
		return []string{"callers have no effect, because no listener asks for a proof, so everyone may use it: set auth, like " +
			"server: {grpc: {auth: token}, http: {auth: token}}"}
	case asked == 0 && c.Server.Limits.Caller.Per > 0:
		return []string{"server.limits.caller has no effect, because no listener asks for a proof, so no client is a caller: set auth, " +
			"or use server.limits.address"}
	case asked == 0:
		return nil
	case len(all) == 0:
		return []string{"there is no caller, so every client of a listener with auth is refused: make one with headgate token NAME"}
	}
	var ended, noToken, noCertificate []string
	for i := range all {
		one := &all[i]
		if !one.Until.IsZero() && !one.Until.After(now) {
			ended = append(ended, one.Name)
		}
		if asked&AuthToken == 0 && one.Certificate == "" {
			noCertificate = append(noCertificate, one.Name)
		}
		if asked&AuthMTLS == 0 && len(one.Tokens) == 0 {
			noToken = append(noToken, one.Name)
		}
	}
	var texts []string
	note := func(names []string, text string) {
		if len(names) > 0 {
			texts = append(texts, fewNames(names)+": "+text)
		}
	}
	note(ended, "the time until which the caller may use the server is over: set a later until, or remove the caller")
	note(noToken, "the caller has a certificate only, and no listener has auth: mtls: give it a token, or set auth: [token, mtls]")
	note(noCertificate, "the caller has a token only, and no listener has auth: token: give it a certificate, or set auth: [token, mtls]")
	return texts
}

// asked gives the proofs that open listeners ask for.
func (c *Config) asked() (all Auth) {
	for _, l := range [...]struct {
		address string
		auth    Auth
	}{
		{c.Server.GRPC.Address, c.Server.GRPC.Auth},
		{c.Server.HTTP.Address, c.Server.HTTP.Auth},
		{c.Server.RESP.Address, c.Server.RESP.Auth},
		{c.Admin.Listen, c.Admin.Auth},
	} {
		if l.address != "" {
			all |= l.auth
		}
	}
	return all
}

// mostNames bounds the names in one warning.
const mostNames = 3

// fewNames lists callers, and counts those after the third.
func fewNames(names []string) string {
	text := "caller " + strings.Join(names[:min(len(names), mostNames)], ", ")
	if more := len(names) - mostNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
