package rules

import (
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/mode"
)

// Modes is the component of the modes that are changed at run time.
type Modes = mode.Component

// Modes returns the component that changes the modes of the rules, of fair share and of the throttle of an instance.
func (r *Rules) Modes(instance component.Configuration) *Modes { return mode.New(r.host, instance) }
