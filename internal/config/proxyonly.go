package config

import "slices"

// unusedByPrograms lists the settings of the file that only headgate proxy and headgate server use: the
// listeners, metering, leases, and the logs.
func (s *section) unusedByPrograms() []string {
	var settings []string
	for _, name := range s.names {
		switch name {
		case "admin", "shutdown_timeout", "metering", "cors", leaseName:
			settings = append(settings, name)
		case "proxy", "server":
			settings = append(settings, s.fieldsOf(name, func(string) bool { return true })...)
		case "log":
			settings = append(settings, s.fieldsOf(name, func(field string) bool {
				return slices.Contains([]string{"level", "format", "access", "access_file"}, field)
			})...)
		}
	}
	return settings
}

// fieldsOf lists the fields of a section that match, in the order of the file.
func (s *section) fieldsOf(name string, match func(field string) bool) []string {
	v, ok := s.resolve(value{path: name, node: s.fields[name].value})
	if !ok {
		return nil
	}
	var fields []string
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		if field := v.node.Content[i].Value; match(field) {
			fields = append(fields, name+"."+field)
		}
	}
	return fields
}
