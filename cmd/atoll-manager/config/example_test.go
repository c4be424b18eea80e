// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"

	"github.com/atoll-dev/atoll/cmd/atoll-manager/config"
)

func ExampleParse() {
	_, err := config.Parse([]byte("apiVersion: manager.atoll.dev/v1alpha1\nkind: ManagerConfiguration\nlog: {level: 99}\n"))
	fmt.Println(err)
	// Output: configuration: log.level: is 99; accepted: 0 to 10
}
