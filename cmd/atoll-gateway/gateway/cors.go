// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"time"

	"github.com/rs/cors"
)

// withCORS lets the pages of the allowed origins use h from a browser. Requests of other pages get no headers of CORS, so
// that browsers keep the answers from them; the proxy also refuses their writes and streams. Preflight requests come
// without credentials and are answered here.
func withCORS(h http.Handler, origins []string) http.Handler {
	if len(origins) == 0 {
		return h
	}
	return cors.New(cors.Options{
		AllowedOrigins:   origins,
		AllowedMethods:   []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowedHeaders:   []string{"Accept", "Authorization", "Content-Type", "User-Agent", "X-Requested-With"},
		ExposedHeaders:   []string{"Audit-Id", "Date", "Retry-After", "Warning"},
		AllowCredentials: true, // client certificates
		MaxAge:           int((10 * time.Minute).Seconds()),
	}).Handler(h)
}
