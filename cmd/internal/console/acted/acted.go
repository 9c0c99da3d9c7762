// Package acted is the room of what operators have done at run time: the list of their last actions, with the commands that undo them.
package acted

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/internal/config"
)

// Component answers the calls about actions. The host of the instance remembers them.
type Component struct {
	component.Defaults

	host *component.Host
}

// New makes the component.
func New(host *component.Host) *Component { return &Component{host: host} }

// Calls implements component.Component. The commands that undo actions have keys, which only callers that may administer see.
func (c *Component) Calls() []calls.Call {
	return []calls.Call{{
		Pattern: "GET /api/v1/actions", Scope: config.ScopeAdminister,
		Handler: calls.OwnSiteOrProgram(calls.Parameters(c.host.Log, c.list)),
	}}
}

func (c *Component) list(w http.ResponseWriter, _ *http.Request) {
	shown := c.host.Actions.List()
	if shown == nil {
		shown = []admin.Action{}
	}
	calls.WriteJSON(c.host.Log, w, admin.Actions{Now: time.Now().UTC(), Actions: shown})
}

// WriteList prints actions for headgate ctl actions.
func WriteList(w io.Writer, all *admin.Actions) error {
	if len(all.Actions) == 0 {
		_, err := fmt.Fprintln(w, "no actions since the start")
		return err
	}
	for i := range all.Actions {
		a := &all.Actions[i]
		line := a.Time.Local().Format(time.DateTime) + " " + a.Action + " " + a.Object
		if a.Caller != "" {
			line += " by " + a.Caller
		}
		line += " from " + a.Address
		if a.Reason != "" {
			line += ": " + a.Reason
		}
		var said strings.Builder
		said.WriteString(terminal.Printable(line) + "\n")
		for _, field := range [...]struct{ name, text string }{
			{"before", a.Before}, {"after", a.After}, {"error", a.Error}, {"undo", a.Undo},
		} {
			if field.text != "" {
				said.WriteString("  " + field.name + ": " + terminal.Printable(field.text) + "\n")
			}
		}
		if _, err := io.WriteString(w, said.String()); err != nil {
			return err //nolint:wrapcheck // because it is the writer's own error.
		}
	}
	return nil
}
