// Package hostile tests the program against far ends, clients, files and environments that mean harm or fail.
package hostile
