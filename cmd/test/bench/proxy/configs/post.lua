-- Each request has a body of 4 KiB.
wrk.method = "POST"
wrk.body = string.rep("headgate", 512)
