// Package httppace keeps the requests of a net/http client within the limits of those
// that they are sent to.
//
//	paced, err := httppace.New(httppace.Config{Hosts: map[string]*pace.Pacer{
//		"api.example.com": mail,  // made by pace.New
//		"*.example.org":   other, // one limit for all of its hosts
//	}})
//	client := &http.Client{Transport: paced, Timeout: 5 * time.Second}
//
// # Waiting
//
// A request waits for its permit within its deadline, which a client's Timeout is too.
// One that cannot have it in time fails at once, with a *pace.TimeoutError that says
// when it could (errors.As finds it in the client's error). Without a deadline it waits
// for a minute. Each request takes a permit: those of a redirect, too, and those
// that Config.Retries allows. What net/http sends again by itself, when an idle
// connection turns out to be closed, does not.
//
// # Learning
//
// The limit that is configured is what counts, and what the provider answers is heeded
// besides (package [github.com/headgate/headgate/pace/feedback] says how exactly):
//
//	429, or 503 with Retry-After   stop until then, and go on more slowly
//	RateLimit: …;r=0;t=30          stop until there is more, if the pacer does not hold calls back
//	Headgate-Warning: soft-limit   go on more slowly
//
// Who was not refused for a while goes faster again, step by step. The pacer's source
// tells the other instances when it can (a [pace.Braker]), so that the fleet
// slows down when one of them is refused. A provider is believed: it can stop those who call it
// for an hour. If it limits each of your users or tokens by itself, choose a pacer for each
// by Config.Pacer, or one refused user stops all.
//
// # Cost
//
// A request that finds its pacer open takes about a microsecond more, and no
// allocation.
package httppace
