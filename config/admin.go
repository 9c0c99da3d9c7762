package config

// admin reads where an instance tells of itself.
func (s *section) admin(a *Admin) {
	admin := s.sub("admin", `{listen: "127.0.0.1:9902"}`)
	admin.adminListen("listen", &a.Listen)
	admin.adminListen("health", &a.Health)
	admin.end()
}
