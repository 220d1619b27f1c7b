package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
)

// Window is the largest difference, in seconds, between a check's timestamp and our clock.
const Window = 300

var errSecret = errors.New("a check secret is whsec_ and base64, and not empty")

// Key decodes a check secret.
func Key(secret string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) == 0 || !strings.HasPrefix(secret, "whsec_") {
		return nil, errSecret
	}
	return key, nil
}

// Verify returns true if one of the signatures is valid: HMAC-SHA256 over id.timestamp.body.
// now is the time in seconds. During a rotation the header has one signature per secret.
func Verify(key []byte, id, timestamp, signatures string, body []byte, now int64) bool {
	sent, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || id == "" || sent < now-Window || sent > now+Window {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	expected := mac.Sum(nil)
	fits := false
	for _, signature := range strings.Fields(signatures) {
		version, text, _ := strings.Cut(signature, ",")
		given, err := base64.StdEncoding.DecodeString(text)
		if version == "v1" && err == nil && hmac.Equal(given, expected) {
			fits = true
		}
	}
	return fits
}
