package refusal

const htmlType = "text/html"

// ready is the body of a style.
type ready struct{ kind, text, policy string }

// readyBody returns the body of a style. It is empty for the problem document.
func readyBody(s Style) ready {
	switch s {
	case HTML:
		return ready{htmlType, page, "default-src 'none'; style-src 'unsafe-inline'"}
	case OpenAI:
		return ready{"application/json", openAIError, ""}
	case Anthropic:
		return ready{"application/json", anthropicError, ""}
	case S3:
		return ready{"application/xml", s3Error, ""}
	default:
		return ready{}
	}
}

const (
	openAIError = `{"error":{"message":"{detail}","type":"{error_type}","param":null,"code":"rate_limit_exceeded"}}` + "\n"

	anthropicError = `{"type":"error","error":{"type":"{error_type}","message":"{detail}"},"request_id":"{request_id}"}` + "\n"

	s3Error = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
		`<Error><Code>SlowDown</Code><Message>{detail}</Message><RequestId>{request_id}</RequestId></Error>` + "\n"

	page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; margin: 15vh auto 0; max-width: 34rem; padding: 0 1rem; color: #222; background: #fff }
h1 { font-size: 1.5rem }
small { color: #666 }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #111 } small { color: #999 } }
</style>
</head>
<body>
<h1>{title}</h1>
<p>{detail}</p>
<p><small>{status} {reason} {request_id}</small></p>
</body>
</html>
`
)
