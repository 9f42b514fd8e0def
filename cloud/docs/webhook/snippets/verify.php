<?php

/**
 * Whether a request was signed with $secret in the last five minutes. $headers
 * has lower-case names, $body is file_get_contents('php://input').
 */
function verify(array $headers, string $body, string $secret, ?int $now = null): bool
{
    $at = $headers['x-webhook-timestamp'] ?? '';
    if (!preg_match('/^\d{1,12}\z/', $at) || abs(($now ?? time()) - (int) $at) > 300) {
        return false;
    }
    $id = $headers['x-webhook-delivery-id'] ?? '';
    if ($id !== '') { // endpoint of a provider
        $want = base64_encode(hash_hmac('sha256', "$at\n$id\n$body", $secret, true));
        $given = [$headers['x-webhook-signature'] ?? '', $headers['x-webhook-signature-next'] ?? ''];
    } else { // address of an account
        $want = hash_hmac('sha256', "$at.$body", $secret);
        $given = explode(',', $headers['x-webhook-signature-v2'] ?? '');
    }
    $ok = false;
    foreach ($given as $g) {
        $ok = hash_equals($want, $g) || $ok;
    }
    return $ok;
}
