package capture

import "bytes"

// foreign are formats that are not read here, by how their files begin, and the commands
// that make something of them that is.
var foreign = []struct{ magic, name, try string }{
	{"\xfd7zXZ\x00", "compressed with xz", "xz -dc FILE | fullpipe diagnose -"},
	{"\x04\x22\x4d\x18", "compressed with lz4", "lz4 -dc FILE | fullpipe diagnose -"},
	{"\x02\x21\x4c\x18", "compressed with an old lz4", "lz4 -dc FILE | fullpipe diagnose -"},
	{"\x1f\x9d", "compressed with compress", "gzip -dc FILE | fullpipe diagnose -"},
	{"]\x00\x00", "compressed with lzma", "xz --format=lzma -dc FILE | fullpipe diagnose -"},
	{"LZIP", "compressed with lzip", "lzip -dc FILE | fullpipe diagnose -"},
	{"PK\x03\x04", "a zip archive", "unzip -p FILE | fullpipe diagnose -"},
	{"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "7z x -so FILE | fullpipe diagnose -"},
	{"\x7fver", "a capture of OmniPeek or AiroPeek", convert},
	{"\x05\x00", "a capture of EtherPeek", convert},
	{"\x06\x00", "a capture of EtherPeek", convert},
	{"\x07\x00", "a capture of EtherPeek", convert},
	{"TRSNIFF data    \x1a", "a capture of Sniffer", convert},
	{"XCP\x00", "a capture of Windows Sniffer", convert},
	{"VL\x00\x00", "a capture of NetXRay", convert},
	{"RTSS", "a capture of Network Monitor 1", convert},
	{"GMBU", "a capture of Network Monitor 2", convert},
	{"iptrace ", "a capture of AIX's iptrace", convert},
	{"\x54\x52\x00\x64\x00", "a capture of HP-UX's nettl", convert},
	{"\x00\x00\x02\x00\x12\x05\x00\x10", "a capture of K12", convert},
	{"\x05VNF", "a capture of Visual Networks", convert},
	{"btsnoop\x00", "a capture of Bluetooth, in which there is no TCP", ""},
}

const convert = "editcap -F pcap FILE FILE.pcap (of Wireshark)"

// recognise returns why a file that begins so is not read here, and a remedy; an empty why says that it is not known.
func recognise(head []byte) (why, try string) {
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return "it is " + f.name, f.try
		}
	}
	return "", ""
}
