package tokens

import "strconv"

// ErrorEvent appends the event with which a stream of the API ends in an error that its clients show. The event of OpenAI also serves
// Anthropic, the AI SDK and LangChain, and is that of Auto and NoAPI. Bedrock gets a frame of an exception.
func (a API) ErrorEvent(dst []byte, message string) []byte {
	switch a {
	case Gemini:
		dst = append(dst, `data: {"error":{"code":429,"message":`...)
		dst = appendJSON(dst, message)
		return append(dst, `,"status":"RESOURCE_EXHAUSTED"}}`+"\n\n"...)
	case Ollama:
		dst = append(dst, `{"error":`...)
		dst = appendJSON(dst, message)
		return append(dst, "}\n"...)
	case Cohere:
		dst = append(dst, "event: message-end\n"+`data: {"type":"message-end","delta":{"finish_reason":"ERROR","error":`...)
		dst = appendJSON(dst, message)
		return append(dst, "}}\n\n"...)
	case Bedrock:
		return appendException(dst, message)
	case NoAPI, Auto, OpenAI, Anthropic:
	}
	dst = append(dst, "event: error\n"+`data: {"type":"error","sequence_number":0,"code":"rate_limit_exceeded","message":`...)
	dst = appendJSON(dst, message)
	dst = append(dst, `,"param":null,"error":{"type":"rate_limit_error","message":`...)
	dst = appendJSON(dst, message)
	return append(dst, `,"code":"rate_limit_exceeded","param":null}}`+"\n\n"...)
}

// Refusal appends the body of a refusal with a status, such as 429, in the form that clients of the API show. errorType is a value for
// the header X-Amzn-Errortype; "" for none. Auto and NoAPI have no form of their own: body is then nil.
func (a API) Refusal(dst []byte, status int, message string) (body []byte, errorType string) {
	switch a {
	case NoAPI, Auto:
		return nil, ""
	case OpenAI:
		dst = append(dst, `{"error":{"message":`...)
		dst = appendJSON(dst, message)
		dst = append(dst, `,"type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}`...)
	case Anthropic:
		dst = append(dst, `{"type":"error","error":{"type":"rate_limit_error","message":`...)
		dst = appendJSON(dst, message)
		dst = append(dst, `},"message":`...)
		dst = append(appendJSON(dst, message), '}')
	case Gemini:
		dst = append(dst, `{"error":{"code":`...)
		dst = strconv.AppendInt(dst, int64(status), 10)
		dst = append(dst, `,"message":`...)
		dst = appendJSON(dst, message)
		dst = append(dst, `,"status":"RESOURCE_EXHAUSTED"}}`...)
	case Ollama:
		dst = append(dst, `{"error":`...)
		dst = append(appendJSON(dst, message), '}')
	case Bedrock, Cohere:
		dst = append(dst, `{"message":`...)
		dst = append(appendJSON(dst, message), '}')
		if a == Bedrock {
			return dst, exception
		}
	}
	return dst, ""
}

// exception is the class of the error of Bedrock's clients.
const exception = "ThrottlingException"
