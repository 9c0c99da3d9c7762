package config

import (
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/cors"
	"github.com/headgate/headgate/internal/errortype"
)

// cors reads which pages of other origins may read the proxy's own answers.
func (s *section) cors(c *Config) {
	const example = `{origins: ["https://app.example.com"]}`
	o := s.sub(s.declare("cors", field.Taken, "Pages of other origins that may read the answers of headgate itself, such as refusals."),
		example)
	var read cors.Config
	read.Origins = o.texts(o.declare("origins", field.Taken, "Origins of the pages, like https://app.example.com, or * for all."),
		`["https://app.example.com"]`, cors.MaxOrigins)
	o.boolean(o.declare("credentials", field.Taken, "true lets pages read the answers to requests with cookies."), &read.Credentials)
	oneOf(o, o.declare("preflights", field.Taken, "exempt: rules do not count the preflights of these origins, unless they name the "+
		"method OPTIONS; count: rules count them."), &read.CountPreflights, []choice[bool]{
		{word: "exempt", value: false}, {word: "count", value: true},
	})
	o.end()
	switch path := o.pathOf("origins"); {
	case !o.begun() || s.blamedAt(o.self.path) || s.blamed(path):
		return
	case len(read.Origins) == 0:
		o.missing("origins", `write the origins of the pages, like origins: ["https://app.example.com"]`)
		return
	}
	policy, err := cors.New(read)
	if bad, found := errortype.As[*cors.OriginError](err); found {
		at, _ := o.given("origins")
		if entries, ok := o.scalars("origins", example, cors.MaxOrigins); ok && bad.Index < len(entries) {
			at = entries[bad.Index]
		}
		s.fault(at, bad.Problem, bad.Fix)
		return
	}
	if err != nil {
		at, _ := o.given("credentials")
		s.fault(at, "is not possible with origin *", "list the origins, or remove credentials")
		return
	}
	c.CORS = policy
}

// checkCORS rejects cors in the file of a decision server. Pages may not ask it, and a gateway answers its clients itself.
func (s *section) checkCORS(c *Config) {
	if s.has("cors") && s.has("server") && !s.has("proxy") && c.Proxy.Upstream == nil && !s.merged {
		s.fault(s.keyOf("cors"), "has no effect without proxy: a decision server refuses requests of web pages, and gateways answer theirs",
			"set the fields of CORS in the gateway, and remove it")
	}
}
