-- +goose Up
-- The inner measures of mock cabinets that are older than such measures, as cloud/mock has them.
UPDATE compartment SET width = 45, depth = 60, height = CASE size WHEN 'S' THEN 12 WHEN 'M' THEN 20 WHEN 'L' THEN 40 ELSE 80 END
WHERE device_id IN (SELECT id FROM device WHERE protocol = 'mock');
