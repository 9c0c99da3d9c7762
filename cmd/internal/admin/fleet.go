package admin

// InstanceHeader names the instance in each answer of the admin listener to a client that may have it.
const InstanceHeader = "Headgate-Instance"

// Local is the parameter of calls that answer for a fleet. With the value 1, an instance answers for itself.
const Local = "local"

// From is what one instance of a fleet answers.
type From[T any] struct {
	// Instance is its name, and Address the address of its admin listener. An instance without a name has the address as its name.
	Instance string `json:"instance"`
	Address  string `json:"address"`
	Answer   T      `json:"answer"`
	// Error says why there is no answer.
	Error string `json:"error,omitempty"`
}
