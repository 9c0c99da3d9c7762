// Package httppace keeps the requests of a net/http client within the limits of the called providers.
//
//	paced, err := httppace.New(httppace.Config{Hosts: map[string]*pace.Pacer{
//		"api.example.com": mail,  // made by pace.New
//		"*.example.org":   other, // one limit for all of its hosts
//	}})
//	client := &http.Client{Transport: paced, Timeout: 5 * time.Second}
//
// # Waiting
//
// A request waits for its permit until its deadline; a client's Timeout sets one. A request that
// cannot get a permit in time fails at once, with a *pace.TimeoutError that has the predicted time
// (errors.As finds it in the client's error). Without a deadline, a request waits for a minute.
// Each request takes a permit, also after a redirect, and also a retry by Config.Retries. When
// net/http repeats a request because an idle connection was closed, it takes no further permit.
//
// # Learning
//
// The configured limit counts. The pacer also follows the provider's answers (package
// [github.com/headgate/headgate/pace/feedback] says how exactly):
//
//	429, or 503 with Retry-After   stop until then, then continue more slowly
//	RateLimit: …;r=0;t=30          stop until the reset, if the pacer does not hold calls back
//	Headgate-Warning: soft-limit   continue more slowly
//
// Without refusals, the pacer speeds up again step by step. The pacer's source tells the other
// instances if it can (a [pace.Braker]), so that the fleet slows down when one instance is refused.
// A provider's answer is trusted: it can stop its callers for an hour. If a provider limits each of
// your users or tokens separately, give each a pacer with Config.Pacer. Otherwise one refused user
// stops all.
//
// # Cost
//
// A request with an open pacer takes about a microsecond more, and allocates nothing more.
package httppace
