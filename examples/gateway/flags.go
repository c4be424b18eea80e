// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// successors are the fields of atoll-gateway's configuration that replace the flags of earlier releases of this program.
var successors = map[string]string{
	"listen": "serving.address", "cert": "serving.certificateFile", "key": "serving.keyFile", "peers": "source.file",
	"users": "authentication.tokenFile.file", "operators": "operators.group", "max-requests": "limits.requests",
	"max-requests-per-region": "limits.requestsPerRegion", "max-requests-per-user": "limits.requestsPerUser",
	"max-streams-per-user": "limits.streamsPerUser", "max-waiting": "limits.waiting", "max-wait": "limits.wait",
	"answer-timeout": "limits.answerTimeout", "region-qps": "limits.regionQPS",
}

// refuse returns an error that names the successor of each flag in args, or nil if there are no arguments.
func refuse(args []string) error {
	if len(args) == 0 {
		return nil
	}
	var lines []string
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if field, ok := successors[name]; ok && strings.HasPrefix(arg, "-") {
			lines = append(lines, fmt.Sprintf("-%s is now the field %s", name, field))
		}
	}
	return fmt.Errorf("this example takes no arguments; run cmd/atoll-gateway with a configuration: %s", strings.Join(lines, ", "))
}
