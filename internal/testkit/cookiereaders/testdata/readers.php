<?php // Answers what PHP reads: see readers.py.
$value = $_COOKIE["session"] ?? null;
if (is_array($value)) {
    echo "array";
} else {
    echo $value === null ? "-" : "x" . bin2hex($value);
}
