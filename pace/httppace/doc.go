// Package httppace keeps the requests of a net/http client within the limits of the called
// providers.
//
//	paced, err := httppace.New(httppace.Config{Hosts: map[string]*pace.Pacer{
//	"api.example.com": mail,  // made by pace.New
//	"*.example.org":   other, // one limit for all of its hosts
//	}})
//	client := &http.Client{Transport: paced, Timeout: 5 * time.Second}
//
// # Waiting
//
// A request waits for its permit until its deadline; a client's Timeout sets one. A request that
// cannot get a permit in time fails at once. The client's error then contains a
// *pace.TimeoutError with the predicted time; use errors.As. Without a deadline, a request waits
// for a minute. Each request takes a permit, including redirects and the retries of
// Config.Retries. When net/http repeats a request because an idle connection was closed, the
// request takes no further permit.
//
// # Learning
//
// The configured limit is the upper bound. The pacer also follows the provider's answers
// (package [github.com/headgate/headgate/internal/pace/feedback] has the details):
//
//	429, or 503 with Retry-After   stop until then, then continue more slowly
//	RateLimit: …;r=0;t=30          stop until the reset, if the pacer does not hold calls back
//	Headgate-Warning: soft-limit   continue more slowly
//
// Without refusals, the pacer speeds up again step by step. If the pacer's source is a
// [pace.Braker], it informs the other instances, so the fleet slows down when one instance is
// refused. The Transport trusts the provider's answers: they can stop the callers for an hour.
// If a provider limits each of your users or tokens separately, give each its own pacer with
// Config.Pacer. Otherwise one refused user stops all.
//
// # Services
//
// Requests to Config.Services, your own services, state their class and deadline. While a service
// refuses many requests of a class, others are not sent: package
// [github.com/headgate/headgate/internal/pace/adaptive] has the rule.
//
// # Cost
//
// With an open pacer, a request takes about a microsecond more, and allocates nothing more.
package httppace
