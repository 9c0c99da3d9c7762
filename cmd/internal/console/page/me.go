package page

import (
	"net/http"
	"strings"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/internal/config"
)

// me tells the page what its operator may do, so that the page offers nothing that the listener would refuse.
func (c *Component) me(w http.ResponseWriter, r *http.Request) {
	now, client := c.current(), access.CallOf(r.Context()).Client()
	told := admin.Me{Caller: client.Name(), Scopes: []string{}, Instance: c.host.Name(now), Actions: now.Admin.Console.Acts(now.Admin.Auth)}
	for word := range strings.SplitSeq((^config.Scope(0)).String(), ", ") {
		if scope, known := config.ParseScope(word); known && client.Permit(scope) == nil {
			told.Scopes = append(told.Scopes, word)
		}
	}
	calls.WriteJSON(c.host.Log, w, told)
}
