package guard

import (
	"strconv"

	"github.com/headgate/headgate"
)

// PermitError says that a request matches a rule which its Permitted leaves out.
type PermitError struct {
	// Rule is the name of the rule.
	Rule string
}

// Error gives the problem and the fix in one sentence.
func (e *PermitError) Error() string {
	return "guard: the request matches rule " + strconv.Quote(e.Rule) + ", which its sender may not use: permit the rule to the sender"
}

// permit checks the matching rules, those in shadow included. The error is a *PermitError.
func (s *set) permit(req *headgate.Request, matched []int) error {
	for _, m := range matched {
		if r := s.rules[m].Rule; r.TrialOf == "" && !req.Permitted(r.Name) {
			return &PermitError{r.Name}
		}
	}
	return nil
}
