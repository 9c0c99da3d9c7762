package remote

import (
	"slices"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// Reads says which parts of requests the rules of a guard read.
type Reads struct {
	Headers, Cookies, Queries []string
	Lines                     []string // headers of which every line counts
	Marks                     []string // headers that answers set for services
	Parts                     []string // parts of keys that a sender can lack

	Host, Subject, PlainParameters bool
}

// ReadsOf gives what the present rules of g read.
func ReadsOf(g *guard.Guard) *Reads {
	needs, reads := g.Needs(), g.Reads()
	r := &Reads{
		Headers: slices.Concat(reads.Headers, reads.Stated), Cookies: reads.Cookies, Queries: reads.Queries, Marks: g.Marks(),
		Parts: g.Parts(),
		Host:  needs&rule.NeedHost != 0, Subject: needs&rule.NeedSubject != 0, PlainParameters: needs&rule.NeedPlainParameters != 0,
	}
	if needs&(rule.NeedXFFIP|rule.NeedUserIP|rule.NeedRegion) != 0 {
		r.Lines = append(r.Lines, "X-Forwarded-For")
		if id := g.Identity(); id != nil {
			r.Headers = append(r.Headers, id.UserIPHeaders...)
		}
	}
	if needs&rule.NeedClaims != 0 {
		r.Headers = append(r.Headers, "Authorization")
	}
	return r
}

// Same reports whether both say the same.
func (r *Reads) Same(other *Reads) bool {
	return slices.Equal(r.Headers, other.Headers) && slices.Equal(r.Cookies, other.Cookies) &&
		slices.Equal(r.Queries, other.Queries) && slices.Equal(r.Lines, other.Lines) &&
		slices.Equal(r.Marks, other.Marks) && slices.Equal(r.Parts, other.Parts) && r.Host == other.Host && r.Subject == other.Subject &&
		r.PlainParameters == other.PlainParameters
}
