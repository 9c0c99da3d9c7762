package config

import (
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
)

// instanceName reads the name of the instance, and whether clients get it with a refusal.
func (s *section) instanceName(c *Config) {
	s.declare("instance", field.Taken, "Name of this instance in logs and in the field Headgate-Decision, which clients see. Default: a "+
		"random name, made at each start.")
	s.outline.field("instance").text("", "^[A-Za-z0-9_.-]*$", 0, 64)
	if v, ok := s.textOf("instance", &c.Instance); ok && guard.CheckNamespace(c.Instance) != nil {
		s.fault(v, quote(c.Instance)+" is not a valid name", "use up to 64 letters, digits, - _ and .")
	}
	s.boolean(s.declare("decision_header", field.Taken, "true sends the name of the instance and of the decision with each refusal, "+
		"in the "+
		"field Headgate-Decision."), &c.DecisionHeader)
}
