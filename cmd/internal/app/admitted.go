package app

import (
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/internal/config"
)

// admitted is an instance, as its admin listeners see it.
type admitted struct{ *Instance }

// Components implements listener.Instance.
func (a admitted) Components() []component.Component { return a.components }

// Ready implements listener.Instance.
func (a admitted) Ready() error { return a.ready() }

// Asked implements listener.Instance.
func (a admitted) Asked() bool { return a.asked }

// AdminMoved implements listener.Instance.
func (a admitted) AdminMoved(c *config.Admin) {
	if a.source != nil {
		a.source.WarnOfListener(c)
	}
}

// ReloadNow implements listener.Instance.
func (a admitted) ReloadNow(by string) (admin.ReloadStatus, error) { return a.reloadNow(by) }
