# Prints what Rack reads: see readers.py.
require "rack"
$stdout.sync = true
while (line = $stdin.gets)
  field = [line.strip].pack("H*")
  begin
    value = Rack::Utils.parse_cookies("HTTP_COOKIE" => field)["session"]
  rescue ArgumentError, EncodingError
    value = nil
  end
  puts value.nil? ? "-" : "x" + value.to_s.b.unpack1("H*")
end
