package client

import (
	"context"
	"net/http"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

func denied() Answer { return Answer{Verdict: headgate.Deny} }

// fallBack decides without a server.
func (k *Client) fallBack(ctx context.Context, r *Request) (Answer, error) {
	k.stats.fallbacks.Add(1)
	a := Answer{Reason: headgate.StoreUnavailable.String(), Local: true}
	switch k.config.Fallback {
	case guard.FallbackAllow:
		return a, nil
	case guard.FallbackLocal:
		return k.decideLocally(ctx, r)
	case guard.FallbackError:
		return denied(), ErrUnavailable
	default:
		a.Verdict, a.Status = headgate.Deny, http.StatusServiceUnavailable
		return a, nil
	}
}

// values are the headers or the cookies of a request.
type values map[string]string

// Lookup implements headgate.Values. name has the canonical form.
func (v values) Lookup(name string) (string, bool) {
	if value, found := v[name]; found {
		return value, true
	}
	for sent, value := range v {
		if http.CanonicalHeaderKey(sent) == name {
			return value, true
		}
	}
	return "", false
}

// queryValues is the query of a request.
type queryValues map[string]string

// Lookup implements headgate.Values.
func (q queryValues) Lookup(name string) (string, bool) {
	value, found := q[name]
	return value, found
}

// decideLocally decides by Config.Local.
func (k *Client) decideLocally(ctx context.Context, r *Request) (Answer, error) {
	req := headgate.Request{
		Method: r.Method, Host: r.Host, Path: r.Path, IP: r.IP, Header: values(r.Headers), Cookie: values(r.Cookies),
		Query:  queryValues(r.Query),
		Domain: r.Domain, Descriptors: r.Descriptors, Subject: r.Subject, Cost: r.Cost,
	}
	var answer guard.Answer
	if err := k.config.Local.Decide(ctx, &req, &answer); err != nil {
		return denied(), err
	}
	if answer.Verdict == headgate.Wait {
		if err := k.config.Local.Wait(ctx, &answer); err != nil {
			return denied(), err
		}
		answer.Verdict = headgate.Allow
	}
	a := Answer{Verdict: answer.Verdict, Local: true, Reason: headgate.NoRule.String()}
	closest := answer.Closest()
	if closest == nil {
		return a, nil
	}
	d := &closest.Decision
	a.Policy, a.Quota, a.Reason, a.Limit, a.Remaining = closest.Policy, closest.Quota(), d.Reason.String(), d.Limit, d.Remaining
	a.ResetAfter = d.ResetAfter
	if answer.Verdict == headgate.Deny {
		a.Status, a.RetryAfter, a.Violated = fields.Status(&answer), answer.RetryAfter(), []string{closest.Policy}
	}
	return a, nil
}
