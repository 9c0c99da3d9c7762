package admin

// Me is the answer of GET /api/v1/me: what the caller may do here.
type Me struct {
	// Caller is its name in server.callers; "" without admin.auth.
	Caller   string   `json:"caller"`
	Scopes   []string `json:"scopes"`
	Instance string   `json:"instance"`
	// Actions says that the console offers actions to callers that may administer: see config.Console.
	Actions bool `json:"actions"`
}
