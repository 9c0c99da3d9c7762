package replay

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/engine"
	"github.com/headgate/headgate/cmd/internal/lab/logs"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// call is one request of a log on its way through an engine.
type call struct {
	engine.Attempt

	trial  *trial
	record record
	number int64 // of the request in its trial
	query  rule.Query
	at     headgate.Instant
	// refused is the decision. refuser is the first result of the file that refused; nil without a refusal.
	refused bool
	refuser *guard.Result
	cost    [20]byte // room for the text of a cost
	next    *call    // in the list of free calls
}

// columns are the positions of the parts of requests on a line.
type columns struct {
	headers, cookies, claims []column
	subject, xffIP, userIP   int // -1 without one
}

// column is a header, a cookie or a claim.
type column struct {
	name string
	at   int
}

func columnsOf(parts []string) columns {
	c := columns{subject: -1, xffIP: -1, userIP: -1}
	for i, p := range parts {
		switch {
		case strings.HasPrefix(p, headerPrefix):
			c.headers = append(c.headers, column{p[len(headerPrefix):], i})
		case strings.HasPrefix(p, cookiePrefix):
			c.cookies = append(c.cookies, column{p[len(cookiePrefix):], i})
		case strings.HasPrefix(p, claimPrefix):
			c.claims = append(c.claims, column{p[len(claimPrefix):], i})
		case p == "mtls_subject":
			c.subject = i
		case p == partXFFIP:
			c.xffIP = i
		case p == partUserIP:
			c.userIP = i
		}
	}
	return c
}

// value returns the value of a part; a hash stands for its value.
func (c *call) value(i int) (string, bool) {
	if i < 0 || i >= len(c.record.Parts) {
		return "", false
	}
	p := &c.record.Parts[i]
	return p.text, p.form == logs.Plain || p.form == logs.Hashed
}

func (c *call) named(all []column, name string) (string, bool) {
	for i := range all {
		if all[i].name == name {
			return c.value(all[i].at)
		}
	}
	return "", false
}

// The values of a call by name. The conversions of a pointer allocate nothing.
type (
	callHeaders call
	callCookies call
	callClaims  call
)

// Lookup implements headgate.Values. The cost of the log stands for a header that states a cost.
func (h *callHeaders) Lookup(name string) (string, bool) {
	c := (*call)(h)
	if text, found := c.named(c.trial.columns.headers, name); found {
		return text, true
	}
	if c.record.Cost > 0 && c.trial.costHeaders[name] {
		return string(strconv.AppendInt(c.cost[:0], c.record.Cost, 10)), true
	}
	return "", false
}

// Lookup implements headgate.Values.
func (h *callCookies) Lookup(name string) (string, bool) {
	c := (*call)(h)
	return c.named(c.trial.columns.cookies, name)
}

// Lookup implements headgate.Values.
func (h *callClaims) Lookup(name string) (string, bool) {
	c := (*call)(h)
	return c.named(c.trial.columns.claims, name)
}

// invalid says why a front would refuse a request before any rule.
type invalid uint8

const (
	valid invalid = iota
	badPath
	badHost
	badCost
	invalidCount
)

var invalidNames = [invalidCount]string{"", "path that services read in different ways", "invalid host", "invalid cost"}

// fill makes the request of the record, as the proxy does.
func (c *call) fill(needs rule.Needs) invalid {
	r, t := &c.record, c.trial
	c.Request = headgate.Request{Method: r.Method, IP: r.Client, UserIP: r.UserIP, Region: r.Region}
	req := &c.Request
	var ok bool
	if req.Path, ok = cleanPath(r.Method, r.Path, needs); !ok {
		return badPath
	}
	if needs&rule.NeedHost != 0 && r.Host != "" {
		if req.Host, _, ok = rule.ParseHost(r.Host); !ok {
			return badHost
		}
	}
	if r.Query != "" {
		c.query = rule.Query(r.Query)
		req.Query = &c.query
	}
	if len(t.columns.headers) > 0 || len(t.costHeaders) > 0 {
		req.Header = (*callHeaders)(c)
	}
	if len(t.columns.cookies) > 0 {
		req.Cookie = (*callCookies)(c)
	}
	for i := range t.columns.claims {
		if _, found := c.value(t.columns.claims[i].at); found {
			req.Claims = (*callClaims)(c)
			break
		}
	}
	req.Subject, _ = c.value(t.columns.subject)
	if t.columns.xffIP >= 0 {
		req.XFFIP = c.address(t.columns.xffIP)
	}
	if !req.UserIP.IsValid() && t.columns.userIP >= 0 {
		req.UserIP = c.address(t.columns.userIP)
	}
	req.ClientIP = req.UserIP
	return valid
}

func (c *call) address(i int) netip.Addr {
	text, _ := c.value(i)
	at, _ := netip.ParseAddr(text) // Another text gives no address.
	return at.Unmap().WithZone("")
}

// cleanPath returns the path that rules match, and reports false for a request that the proxy answers with 400.
func cleanPath(method, sent string, needs rule.Needs) (clean string, ok bool) {
	if method == "OPTIONS" && sent == "*" {
		return sent, true
	}
	decoded := sent
	if strings.IndexByte(sent, '%') >= 0 {
		if needs&rule.NeedPlainParameters != 0 && (strings.Contains(sent, "%3b") || strings.Contains(sent, "%3B")) {
			return "", false
		}
		var err error
		if decoded, err = url.PathUnescape(sent); err != nil {
			return "", false
		}
	}
	clean, err := rule.CleanPath(decoded, sent, true)
	return clean, err == nil
}

// keep copies the texts of the record, for a request that may wait: the payload does not live as long.
func (r *record) keep() {
	for _, text := range [...]*string{&r.Method, &r.Host, &r.Path, &r.Query, &r.Region, &r.Verdict, &r.Reason, &r.RuleName} {
		*text = strings.Clone(*text)
	}
	for i := range r.Parts {
		r.Parts[i].text = strings.Clone(r.Parts[i].text)
	}
}

// outcome is how the request ended in the log.
func (c *call) outcome() guard.Outcome {
	o := guard.Outcome{End: guard.Answered, Status: c.record.Status}
	if c.record.Cost > 0 && c.trial.settles {
		cost := c.record.Cost
		o.Header = func(string) (string, bool) { return strconv.FormatInt(cost, 10), true }
	}
	return o
}
