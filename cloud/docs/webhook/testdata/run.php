<?php

require __DIR__ . '/../snippets/verify.php';

while (($line = fgets(STDIN)) !== false) {
    $parts = explode("\t", rtrim($line, "\n"));
    $headers = [];
    foreach (array_slice($parts, 3) as $h) {
        [$name, $value] = explode('=', $h, 2);
        $headers[$name] = base64_decode($value);
    }
    echo verify($headers, base64_decode($parts[2]), base64_decode($parts[0]), (int) $parts[1]) ? 1 : 0, "\n";
}
