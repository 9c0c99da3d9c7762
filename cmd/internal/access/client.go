package access

import (
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/config"
)

// open are the scopes of clients of a listener without auth.
const open = config.ScopeDecide | config.ScopeSendLimits | config.ScopeRead | config.ScopeLease

// Client is a client that a Gate has let in. A nil Client is one of a listener without auth. A Client is
// safe for concurrent use.
type Client struct {
	name           string
	scopes         config.Scope
	domains, rules map[string]struct{} // nil means all
	until          time.Time           // zero means no end
	units          *bucket             // nil without a limit
	permitted      func(rule string) bool
}

// newClient makes the Client of a caller. units may be nil.
func newClient(c *config.Caller, units *bucket) *Client {
	client := &Client{
		name: c.Name, scopes: c.Scopes, domains: setOf(c.Domains), rules: setOf(c.Rules), until: c.Until, units: units,
	}
	if client.rules != nil {
		client.permitted = func(rule string) bool {
			_, found := client.rules[rule]
			return found
		}
	}
	return client
}

func setOf(names []string) map[string]struct{} {
	if len(names) == 0 {
		return nil
	}
	set := make(map[string]struct{}, len(names))
	for _, name := range names {
		set[name] = struct{}{}
	}
	return set
}

// Name is the name of the caller; "" without auth.
func (c *Client) Name() string {
	if c == nil {
		return ""
	}
	return c.name
}

// Permit says whether the client has a scope. The error is a *ForbiddenError.
func (c *Client) Permit(scope config.Scope) error {
	switch {
	case c == nil && scope&^open == 0, c != nil && scope&^c.scopes == 0:
		return nil
	case c == nil || c.name == "":
		return &ForbiddenError{"this needs the scope " + scope.String() + ", which clients of this listener do not have: set its auth, " +
			"and give the scope to a caller"}
	default:
		return &ForbiddenError{c.subject() + " lacks the scope " + scope.String() + ": add it to the caller's scopes"}
	}
}

func (c *Client) subject() string { return "caller " + strconv.Quote(c.name) }

// PermitDomain says whether the client may use a domain. The error is a *ForbiddenError.
func (c *Client) PermitDomain(name string) error {
	if c == nil || c.domains == nil {
		return nil
	}
	if _, found := c.domains[name]; found {
		return nil
	}
	return &ForbiddenError{c.subject() + " may not use the domain " + shortened(name) + ": add it to the caller's domains"}
}

// Rules reports whether a request of the client may match a rule. nil permits all rules.
func (c *Client) Rules() func(rule string) bool {
	if c == nil {
		return nil
	}
	return c.permitted
}

// OutsideRules is the error of a request that matches a rule outside the caller's rules.
func (c *Client) OutsideRules(rule string) error {
	return &ForbiddenError{c.subject() + " may not use the rule " + shortened(rule) + ": add it to the caller's rules"}
}

// TakeSome takes up to n units of the caller's limit, and gives how many. The error is a *BusyError if they
// are fewer than n.
func (c *Client) TakeSome(n int) (granted int, err error) {
	if c == nil || c.units == nil {
		return n, nil
	}
	some, err := c.units.takeSome(int64(n))
	return int(some), err
}

// TakeAll takes n units of the caller's limit, or none. The error is a *BusyError.
func (c *Client) TakeAll(n int) error {
	if c == nil || c.units == nil {
		return nil
	}
	return c.units.takeAll(int64(n))
}

// ended reports whether the credentials of the client have ended.
func (c *Client) ended(now time.Time) bool { return !c.until.IsZero() && !now.Before(c.until) }

// shortened bounds a text of a client in an error.
func shortened(text string) string {
	const most = 64
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return strconv.Quote(text)
}
