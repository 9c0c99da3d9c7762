package rule

import "strings"

// readOverride checks a value of a part that is a text, and gives it as requests
// have it. A value that no request could have is a fault.
func readOverride(kind partKind, value string) (string, fault) {
	switch {
	case kind == partNone:
		return "", fault{"belongs to an empty part", "use ParsePart"}
	case kind == partAll:
		return "", fault{quote(value) + " is no value of all, which has none", "leave overrides out, or use another key"}
	case value == "":
		return "", fault{"is empty", "write the value as requests have it"}
	case kind == partMethod:
		return value, checkOneMethod(value)
	case kind == partHost:
		return readHost(value)
	case kind == partPath:
		return value, checkOnePath(value)
	case kind == partRegion:
		return value, checkRegion(value)
	case kind == partHeader && !isHeaderValue(value):
		return "", fault{quote(value) + " is no value that a header can have", "leave out the space around it and line breaks"}
	default:
		return value, fault{}
	}
}

func checkOneMethod(value string) fault {
	if faultyTokenByte(value) >= 0 {
		return fault{quote(value) + " is no method", "write a method like GET"}
	}
	return checkMethod(value)
}

// readHost gives the host in the spelling that requests have.
func readHost(value string) (string, fault) {
	if strings.Contains(value, "*") {
		return "", fault{quote(value) + " is more than one host", "write one host, like api.example.com"}
	}
	if f := checkHost(value); f != (fault{}) {
		return "", f
	}
	return newHostPattern(value).name, fault{}
}

func checkOnePath(value string) fault {
	if strings.Contains(value, "*") {
		return fault{quote(value) + " is more than one path", "write one path, like /v1/product"}
	}
	return checkPath(value)
}

// checkRegion finds codes of the wrong case. Which codes there are is for the
// Regions to say.
func checkRegion(value string) fault {
	if upper := strings.ToUpper(value); len(value) == 2 && value != upper {
		return fault{quote(value) + " is never found: codes of regions are in capitals", "write " + quote(upper)}
	}
	return fault{}
}
